// Races between threads of one block in global memory, by the clocks of racecheck for shared memory.
//
// What a warp does in a piece of 512 bytes is mostly a row of its threads: told in so few words, it takes one
// comparison to see that the same threads come again. Even that waits until another access may have to do with it,
// which mostly a barrier comes before. Of accesses all over the place the last ones are kept as they are, for others
// that meet them. Only plain accesses are looked at, and volatile ones that revise a value. What is kept is not all
// that there was: so a race may be missed, but a correct program is never accused.
#include <algorithm>
#include <bit>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"

namespace sim {
namespace {

using Touch = SharedRaces::Touch;

// The lanes of an access by the places of their own that they touch.
class Places {
 public:
  explicit Places(const Access& a) : a_(a), shift_(static_cast<unsigned>(std::countr_zero(a.size))) {
    entries_.fill(none);
  }
  // The lane that has been here; if there is none, `lane` is.
  unsigned put(unsigned lane) {
    std::uint8_t& entry = *find(a_.address[lane] >> shift_);
    if (entry == none) entry = static_cast<std::uint8_t>(lane);
    return entry;
  }
  // The first lane that touches one of these bytes; lane_count: there is none.
  unsigned at(Address low, Address high) {
    for (Address place = low >> shift_; place <= (high - 1) >> shift_; ++place) {
      if (const auto entry = *find(place); entry != none) return entry;
    }
    return lane_count;
  }

 private:
  static constexpr std::uint8_t none = 0xff;
  std::uint8_t* find(Address place) {
    std::size_t n = place * 0x9e3779b97f4a7c15 >> 58;
    while (entries_[n] != none && a_.address[entries_[n]] >> shift_ != place) n = (n + 1) % entries_.size();
    return &entries_[n];
  }
  const Access& a_;
  unsigned shift_;
  std::array<std::uint8_t, 64> entries_;
};

// Whether each lane accesses what begins behind where the lane before it does.
bool ascending(const Access& a, const Rows& rows) {
  if (a.shape == Access::Shape::uniform) return count_lanes(a.mask) == 1;
  if (rows.count) {
    return std::adjacent_find(rows.begin(), rows.end(), [&](const Row& before, const Row& row) {
             return row.low + a.size <= before.high;
           }) == rows.end();
  }
  Address last = 0;
  for (Mask m = a.mask; m; m &= m - 1) {
    const Address at = a.address[std::countr_zero(m)];
    if (at <= last) return false;
    last = at;
  }
  return true;
}

std::size_t piece_of(const SharedRaces& r, Address at) {
  const auto number = at >> r.piece_shift;
  return (number ^ number / SharedRaces::pieces) % SharedRaces::pieces;  // of arrays that lie 64 KiB apart, too
}
bool meets(const Touch& t, const Touch& me) { return t.low <= me.low + me.bytes && me.low <= t.low + t.bytes; }
bool fits(const Touch& t, const Touch& me, std::uint32_t floor) {
  return t.clock < floor || (t.alike(me) && meets(t, me));
}
void put(Touch& last, const Touch& me) {
  if (last.clock == me.clock && last.site == me.site && last.alike(me) && meets(last, me)) {  // next part of a row
    const Address end = std::max(last.low + last.bytes, me.low + me.bytes);
    last.low = std::min(last.low, me.low);
    last.bytes = static_cast<std::uint16_t>(end - last.low);
  } else {
    last = me;
  }
}
// What several threads write alike is nobody's in particular.
void remember(SharedRaces::Touches& touches, std::size_t piece, const Touch& me, std::uint32_t floor, bool shared) {
  if (shared) {
    for (auto& kept : touches.kept) {
      if (meets(kept[piece], me)) kept[piece] = {};
    }
    return;
  }
  Touch* last = &touches.kept[0][piece];
  if (!fits(*last, me, floor)) [[unlikely]] {
    touches.last_beside = me.clock;
    for (auto& kept : touches.kept) {
      if (fits(kept[piece], me, floor) || kept[piece].clock < last->clock) last = &kept[piece];
      if (fits(*last, me, floor)) break;
    }
  }
  put(*last, me);
}

struct Checker {
  Warp& w;
  const Instruction& i;
  const Access& a;
  const Rows& rows;
  SharedRaces& r;

  std::uint16_t thread(unsigned lane) const { return static_cast<std::uint16_t>(w.number * lane_count + lane); }
  bool conflicts(const Touch& touch, bool other_writes, std::uint32_t other, unsigned lane) const {
    const std::uint32_t stamp = touch.clock << SharedRaces::thread_bits | other;
    return other != thread(lane) && !ordered(r, stamp, w.number, lane) &&
           (other_writes || !read_before_passing(r, stamp, w.number));
  }
  // `readers`: the lanes that may have read, if one of the two accesses is a read.
  void report(const Touch& touch, bool other_writes, std::uint32_t other, unsigned lane, Mask readers) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted) return;
    const std::uint32_t other_warp = other / lane_count, other_lane = other % lane_count;
    const bool same_warp = other_warp == w.number;
    SharedRaces::Doubt doubt{
        a.write ? touch.site : i.site, a.write ? other_warp : w.number, readers, i.site, touch.site, {}};
    if (same_warp) doubt.lanes &= ~(1u << (a.write ? lane : other_lane));
    const bool doubtful = launch.program.of_triton && a.write != other_writes;
    if (doubtful ? r.doubted(doubt) : launch.seen("race_global", i.site)) return;
    const bool locked = in_unfenced_lock(r, w.number);
    const char* mistake =
        locked ? "unfenced_lock" : mistake_of_one_statement(launch.program, i.site, a.write, touch.site, other_writes);
    const std::uint32_t stamp = touch.clock << SharedRaces::thread_bits | other;
    doubt.finding = launch.finding("race_global", mistake ? mistake : missing_order(r, stamp, w.number, lane), i.site,
                                   {accessing(w, i, a, lane), launch.at(touch.site, *w.block, other_warp, other_lane,
                                                                        other_writes ? "writes" : "reads")},
                                   both(target(w, a, lane), launch.overlap(i.site, a.write, touch.site, other_writes)));
    if (locked) doubt.finding.facts.emplace_back("lock", launch.place(r.locks[w.number].site).line);
    if (doubtful)
      r.doubts.push_back(std::move(doubt));
    else
      launch.findings.add(std::move(doubt.finding));
  }

  void report_lanes(unsigned lane, unsigned other) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted || launch.seen("race_global", i.site)) return;
    Place beside = launch.at(i.site, *w.block, w.number, other);
    beside.line = 0;  // the same instruction
    beside.file.clear();
    beside.calls.clear();
    launch.report("race_global", i.revises ? "lost_update" : "same_instruction", i.site,
                  {accessing(w, i, a, lane), std::move(beside)}, target(w, a, lane));
  }
  // Lanes that store different values to one place at once. Volatile is no excuse, as it is for stores one after the
  // other.
  void against_each_other() const {
    if (!a.write || a.atomic || a.shape == Access::Shape::contiguous || (i.is_volatile && !i.only_volatile) ||
        ascending(a, rows))
      return;
    Places places(a);
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(m));
      const unsigned other = places.put(lane);
      if (other != lane && (!store_alike(a, lane, other) || (i.revises && !silent(a, lane))))
        return report_lanes(lane, other);
    }
  }

  void keep(SharedRaces::Ring& ring, Mask mask) const {
    if (ring.last < r.floor[w.number]) ring.around = {};
    ring.around.extend(a.low, a.high);
    ring.last = r.clock;
    ring.list.resize(SharedRaces::Ring::kept);
    SharedRaces::Scattered& g = ring.list[ring.next++ % SharedRaces::Ring::kept];
    g.low = a.low;
    g.high = a.high;
    g.clock = r.clock;
    g.site = i.site;
    g.warp = w.number;
    g.size = a.size;
    g.mask = mask;
    std::copy(a.address, a.address + lane_count, g.address.begin());
  }
  // Reports the first lane that races with what is in a ring. Those that write what is there already: whoever reads it
  // may find either, so that neither write is held against anybody.
  Mask against_scattered(SharedRaces::Ring& ring, bool writes) const {
    Mask alike = 0;
    if (ring.last < r.floor[w.number] || !ring.around.meets(a.low, a.high)) return alike;
    Places places(a);
    for (Mask m = a.mask; m; m &= m - 1) places.put(static_cast<unsigned>(std::countr_zero(m)));
    for (auto& g : ring.list) {
      if (g.clock < r.floor[w.number] || a.low >= g.high || g.low >= a.high) continue;
      Touch touch;
      touch.clock = g.clock;
      touch.site = g.site;
      for (Mask m = g.mask; m; m &= m - 1) {
        const auto it = static_cast<unsigned>(std::countr_zero(m));
        const unsigned lane = places.at(g.address[it], g.address[it] + g.size);
        const std::uint32_t other = g.warp * lane_count + it;
        if (lane == lane_count || !conflicts(touch, writes, other, lane)) continue;
        if (!silent(a, lane)) {
          report(touch, writes, other, lane, 1u << (a.write ? it : lane));
          if (w.worker->launch.program.of_triton) continue;
          return alike;
        }
        alike |= 1u << lane;
        if (writes) g.mask &= ~(1u << it);
      }
    }
    return alike;
  }
  // Lanes that write to the same place as others.
  Mask meeting() const {
    Mask found = 0;
    if (ascending(a, rows)) return found;
    Places places(a);
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(m));
      if (const unsigned other = places.put(lane); other != lane) found |= 1u << lane | 1u << other;
    }
    return found;
  }

  // The lanes that touched what this thread touched.
  static Mask lanes_of(const Touch& touch, std::uint32_t thread) {
    if (touch.shift != SharedRaces::same_place) return 1u << thread % lane_count;
    return all_lanes << touch.first % lane_count & all_lanes >> (lane_count - 1 - touch.second % lane_count);
  }

  // Compares with what others did to these bytes; `lane_of` tells who touches which now. Whether some of them have just
  // written the same: whoever reads it may find either.
  template <class F> bool against(const Touch& touch, bool other_writes, const Touch& me, F lane_of) const {
    if (touch.clock < r.floor[w.number] || (touch.alike(me) && touch.first == touch.second)) return false;
    bool same = false;
    const bool together = touch.shift == SharedRaces::same_place;
    const Address end = std::min(touch.low + touch.bytes, me.low + me.bytes);
    const std::uint32_t step = std::min(a.size, together ? w.worker->launch.program.global_granule : 1u << touch.shift);
    for (Address at = std::max(touch.low, me.low); at < end; at += step) {
      const unsigned lane = lane_of(at);
      std::uint32_t other = together ? touch.first : static_cast<std::uint32_t>((at - touch.origin) >> touch.shift);
      if (together && !conflicts(touch, other_writes, other, lane)) other = touch.second;
      if (!conflicts(touch, other_writes, other, lane)) continue;
      if (a.write &&
          (silent(a, lane) || (touch.site == i.site && touch.clock == r.clock && other / lane_count == w.number))) {
        same = true;
      } else {
        report(touch, other_writes, other, lane, a.write ? lanes_of(touch, other) : lanes_of(me, thread(lane)));
      }
    }
    return same;
  }

  SharedRaces::Touches& own() const { return a.write ? r.global_writes : r.global_reads; }
  void extend(Address low, Address high) const {
    (a.write ? r.written : r.read).extend(low, high);
    (a.write ? r.last_global_write : r.last_global_read) = r.clock;
  }
  // The same of what is among the pieces.
  void extend_noted(Address low, Address high) const {
    extend(low, high);
    (a.write ? r.unnoted_rows.noted.written : r.unnoted_rows.noted.read).extend(low, high);
  }
  bool meets(const SharedRaces::Rows::Around& around, const Row& row) const {
    return around.written.meets(row.low, row.high) || (a.write && around.read.meets(row.low, row.high));
  }
  bool harmless(const Touch& t, const Touch& me) const {
    return t.low >= me.low + me.bytes || me.low >= t.low + t.bytes || (t.alike(me) && t.first == t.second);
  }
  // Field by field, in its place: a processor waits where what was stored in parts is soon loaded as a whole.
  void set(Touch& me, Address low, Address high, unsigned first, Mask mask, bool together) const {
    me.low = low;
    me.clock = r.clock;
    me.site = i.site;
    me.bytes = static_cast<std::uint16_t>(high - low);
    if (together) {
      me.origin = 0;
      me.first = thread(first);
      me.second = thread(lane_count - 1 - static_cast<unsigned>(std::countl_zero(mask)));
      me.shift = SharedRaces::same_place;
    } else {
      me.shift = static_cast<std::uint8_t>(std::countr_zero(a.size));
      me.origin = low - (Address{thread(first)} << me.shift);
      me.first = me.second = 0;
    }
  }

  // Bytes [low, high), of which each lane touches those of its own, or all of `mask` the same. `kept`: among the
  // scattered ones; `alike`: others have just written the same. Whether they have.
  bool run(Address low, Address high, unsigned first, Mask mask, bool together, bool kept, bool alike) const {
    note_rows(r);
    Touch me;
    set(me, low, high, first, mask, together);
    const auto lane_of = [&](Address at) {
      return together ? first : first + static_cast<unsigned>((at - low) >> me.shift);
    };
    const std::uint32_t floor = r.floor[w.number];
    const bool meets_writes = after_writes(low, high), meets_reads = after_reads(low, high);
    bool some_alike = alike;
    for (Address from = low, to; from < high; from = to) {
      to = std::min(high, ((from >> r.piece_shift) + 1) << r.piece_shift);
      me.low = from;
      me.bytes = static_cast<std::uint16_t>(to - from);
      const auto piece = piece_of(r, from);
      bool same = alike;
      const auto compare = [&](const SharedRaces::Touches& touches, bool writes) {
        for (std::size_t n = 0; n < touches.count(floor); ++n)
          same |= against(touches.kept[n][piece], writes, me, lane_of);
      };
      if (meets_writes) compare(r.global_writes, true);
      if (meets_reads) compare(r.global_reads, false);
      if (!kept || same) remember(own(), piece, me, floor, same || (a.write && me.first != me.second));
      some_alike |= same;
    }
    if (!kept) extend_noted(low, high);
    return some_alike;
  }
  bool after_writes(Address low, Address high) const {
    return r.last_global_write >= r.floor[w.number] && r.written.meets(low, high);
  }
  bool after_reads(Address low, Address high) const {
    return a.write && r.last_global_read >= r.floor[w.number] && r.read.meets(low, high);
  }
  // run() of a row in one piece, if what others did there has nothing to do with it.
  bool quick(const Row& row) const {
    if (row.low >> r.piece_shift != (row.high - 1) >> r.piece_shift) return false;
    Touch me;
    set(me, row.low, row.high, row.first, a.mask, a.shape == Access::Shape::uniform);
    if (a.write && me.first != me.second) return false;
    const auto piece = piece_of(r, row.low);
    const std::uint32_t floor = r.floor[w.number];
    const auto all_harmless = [&](const SharedRaces::Touches& touches) {
      for (std::size_t n = 0; n < touches.count(floor); ++n) {
        const Touch& t = touches.kept[n][piece];
        if (t.clock >= floor && !harmless(t, me)) return false;
      }
      return true;
    };
    note_rows(r);
    if (!all_harmless(r.global_writes) || (a.write && !all_harmless(r.global_reads))) return false;
    remember(own(), piece, me, floor, false);
    extend_noted(row.low, row.high);
    return true;
  }
  // Whether a row can wait until it is noted: of what has come since the last barrier it meets only what the same
  // threads did.
  bool put_off(const Row& row) const {
    SharedRaces::Rows& rows_off = r.unnoted_rows;
    const bool together = a.shape == Access::Shape::uniform;
    const Region& allocation = w.regions[i.site];
    rows_off.full |= rows_off.count == rows_off.most;
    if ((together && a.write) || rows_off.full || row.low < allocation.base || row.high > allocation.end ||
        meets(rows_off.noted, row))
      return false;
    if (rows_off.warp != w.number) {
      rows_off.warp = w.number;
      rows_off.own = rows_off.count;
      for (std::size_t n = 0; n < rows_off.area_count; ++n) rows_off.areas[n].others = rows_off.areas[n].all;
    }
    SharedRaces::Rows::Area& area = rows_off.area(allocation.base);
    SharedRaces::Row& last = rows_off.list[rows_off.count];
    set(last.touch, row.low, row.high, row.first, a.mask, together);
    last.warp = w.number;
    last.write = a.write;
    if (meets(area.all, row)) {
      if (rows_off.count - rows_off.own > rows_off.most_own || meets(area.others, row)) return false;
      for (const SharedRaces::Row* before = &rows_off.list[rows_off.own]; before != &last; ++before) {
        if ((before->write || a.write) && !harmless(before->touch, last.touch)) return false;
      }
    }
    ++rows_off.count;
    (a.write ? area.all.written : area.all.read).extend(row.low, row.high);
    extend(row.low, row.high);
    return true;
  }
};

}  // namespace

void note_rows(SharedRaces& r) {
  SharedRaces::Rows& rows = r.unnoted_rows;
  for (std::size_t n = 0; n < rows.count; ++n) {
    const auto& [touch, warp, write] = rows.list[n];
    Touch me = touch;
    const Address high = me.low + me.bytes;
    for (Address to; me.low < high; me.low = to) {
      to = std::min(high, ((me.low >> r.piece_shift) + 1) << r.piece_shift);
      me.bytes = static_cast<std::uint16_t>(to - me.low);
      remember(write ? r.global_writes : r.global_reads, piece_of(r, me.low), me, r.floor[warp], false);
    }
  }
  const bool full = rows.full;
  rows.clear();
  rows.full = full;
  rows.noted = {r.written, r.read};
}

void check_within_block(Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  SharedRaces& r = *w.block->races;
  r.exchanged |= a.atomic && i.may_spin;
  if (r.exchanged) check_lock(w, i, a, r);
  const Checker checker{w, i, a, rows, r};
  checker.against_each_other();
  if (i.is_volatile && (!i.revises || r.exchanged)) return;
  const bool scattered = rows.count == 0 || rows.count > 2;
  Mask alike = checker.against_scattered(r.scatters, true);
  if (a.write) alike |= checker.against_scattered(r.gathers, false);
  if (scattered && !a.write) {
    checker.keep(r.gathers, a.mask);
    if (r.last_global_write < r.floor[w.number] || !r.written.meets(a.low, a.high)) return;
  }
  for (const Row& row : rows) {
    if (alike || (!checker.put_off(row) && !checker.quick(row)))
      checker.run(row.low, row.high, row.first, a.mask, a.shape == Access::Shape::uniform, false, alike != 0);
  }
  if (rows.count == 0) {
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      if (checker.run(a.address[l], a.address[l] + a.size, l, 1u << l, true, true, false)) alike |= 1u << l;
    }
  }
  if (scattered && a.write) checker.keep(r.scatters, a.mask & ~alike & ~checker.meeting());
}

}  // namespace sim
