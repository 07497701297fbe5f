// Races between threads of one block in global memory, by the clocks of racecheck for shared memory.
//
// What a warp does in a piece of 512 bytes is mostly a row of its threads: told in so few words, it takes one
// comparison to see that the same threads come again. Of accesses all over the place the last ones are kept as they
// are, for others that meet them. Only plain accesses are looked at, and volatile ones that revise a value; a fence,
// whatever follows it, orders what its warp did before and what that warp had met others after. So a race may be
// missed, but a correct program is never accused.
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

bool ascending(const Access& a) {
  Address last = 0;
  for (Mask m = a.mask; m; m &= m - 1) {
    const Address at = a.address[std::countr_zero(m)];
    if (at <= last) return false;
    last = at;
  }
  return true;
}

struct Checker {
  Warp& w;
  const Instruction& i;
  const Access& a;
  SharedRaces& r;
  const unsigned piece_shift =  // of what a few warps touch
      7 + static_cast<unsigned>(std::countr_zero(w.worker->launch.program.global_granule));

  std::uint16_t thread(unsigned lane) const { return static_cast<std::uint16_t>(w.number * lane_count + lane); }
  bool conflicts(const Touch& touch, std::uint32_t other, unsigned lane) const {
    return other != thread(lane) && touch.clock >= r.released[other / lane_count] &&
           !ordered(r, touch.clock << SharedRaces::thread_bits | other, w.number, lane);
  }
  void report(const Touch& touch, bool other_writes, std::uint32_t other, unsigned lane) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted || launch.seen("race_global", i.site)) return;
    const bool same_warp = other / lane_count == w.number;
    launch.report("racecheck", "race_global", i.site,
                  describe(w, i, a, lane) + " that " +
                      name_thread(launch, *w.block, other / lane_count, other % lane_count) +
                      (other_writes ? " has written" : " has read") + launch.line(touch.site) +
                      ", and nothing orders the two: a " + (same_warp ? "__syncwarp()" : "__syncthreads()") +
                      " between them is missing" + launch.overlap(i.site, a.write, touch.site, other_writes),
                  {.other = touch.site});
  }

  void report_lanes(unsigned lane, unsigned other) const {
    LaunchState& launch = w.worker->launch;
    if (launch.faulted || launch.seen("race_global", i.site)) return;
    launch.report(
        "racecheck", "race_global", i.site,
        describe(w, i, a, lane) + (i.revises ? ", a value computed from what it has read there," : "") + " where " +
            name_thread(launch, *w.block, w.number, other) +
            (i.revises ? " does the same in the same instruction: one of the two updates is lost; use an atomic"
                       : " writes another value in the same instruction: which of them stays is left to chance; let "
                         "one thread write, or use an atomic"));
  }
  // Lanes that store different values to one place at once. Volatile is no excuse, as it is for stores one after the
  // other.
  void against_each_other() const {
    if (!a.write || a.atomic || a.shape == Access::Shape::contiguous || (i.is_volatile && !i.only_volatile) ||
        ascending(a))
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
        if (lane == lane_count || !conflicts(touch, other, lane)) continue;
        if (!silent(a, lane)) {
          report(touch, writes, other, lane);
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
    if (ascending(a)) return found;
    Places places(a);
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(m));
      if (const unsigned other = places.put(lane); other != lane) found |= 1u << lane | 1u << other;
    }
    return found;
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
      if (together && !conflicts(touch, other, lane)) other = touch.second;
      if (!conflicts(touch, other, lane)) continue;
      if (a.write &&
          (silent(a, lane) || (touch.site == i.site && touch.clock == r.clock && other / lane_count == w.number))) {
        same = true;
      } else {
        report(touch, other_writes, other, lane);
      }
    }
    return same;
  }

  // Bytes [low, high), of which each lane touches those of its own, or all of `mask` the same. `kept`: among the
  // scattered ones; `alike`: others have just written the same. Whether they have.
  bool run(Address low, Address high, unsigned first, Mask mask, bool together, bool kept, bool alike) {
    Touch me;
    me.clock = r.clock;
    me.site = i.site;
    if (together) {
      me.shift = SharedRaces::same_place;
      me.first = thread(first);
      me.second = thread(lane_count - 1 - static_cast<unsigned>(std::countl_zero(mask)));
    } else {
      me.shift = static_cast<std::uint8_t>(std::countr_zero(a.size));
      me.origin = low - (Address{thread(first)} << me.shift);
    }
    const auto lane_of = [&](Address at) {
      return together ? first : first + static_cast<unsigned>((at - low) >> me.shift);
    };
    const std::uint32_t floor = r.floor[w.number];
    const bool after_writes = r.last_global_write >= floor && r.written.meets(low, high),
               after_reads = a.write && r.last_global_read >= floor && r.read.meets(low, high);
    for (Address from = low, to; from < high; from = to) {
      to = std::min(high, ((from >> piece_shift) + 1) << piece_shift);
      me.low = from;
      me.bytes = static_cast<std::uint16_t>(to - from);
      const auto piece = (from >> piece_shift) % SharedRaces::pieces;
      bool same = alike;
      if (after_writes) {
        for (const Touch& touch : r.global_writes[piece]) same |= against(touch, true, me, lane_of);
      }
      if (after_reads) {
        for (const Touch& touch : r.global_reads[piece]) same |= against(touch, false, me, lane_of);
      }
      if (!kept || same)
        remember((a.write ? r.global_writes : r.global_reads)[piece], me, floor,
                 same || (a.write && me.first != me.second));
      alike |= same;
    }
    if (kept) return alike;
    (a.write ? r.written : r.read).extend(low, high);
    (a.write ? r.last_global_write : r.last_global_read) = r.clock;
    return alike;
  }
  // What several threads write alike is nobody's in particular.
  static void remember(SharedRaces::Touches& touches, const Touch& me, std::uint32_t floor, bool shared) {
    const auto meets = [&](const Touch& t) { return t.low <= me.low + me.bytes && me.low <= t.low + t.bytes; };
    if (shared) {
      for (Touch& touch : touches) {
        if (meets(touch)) touch = {};
      }
      return;
    }
    Touch* last = touches.data();
    for (Touch& touch : touches) {
      if (touch.clock < last->clock) last = &touch;
      if (touch.clock >= floor && !(touch.alike(me) && meets(touch))) continue;
      last = &touch;
      break;
    }
    if (last->clock == me.clock && last->site == me.site && last->alike(me) && meets(*last)) {  // next part of a row
      const Address end = std::max(last->low + last->bytes, me.low + me.bytes);
      last->low = std::min(last->low, me.low);
      last->bytes = static_cast<std::uint16_t>(end - last->low);
    } else {
      *last = me;
    }
  }
};

}  // namespace

void check_within_block(Warp& w, const Instruction& i, const Access& a, const Rows& rows) {
  SharedRaces& r = *w.block->races;
  if (a.write && i.is_volatile && i.target == 1) released_to_all(r, w.number);
  check_lock(w, i, a, r);
  Checker checker{w, i, a, r};
  checker.against_each_other();
  r.exchanged |= a.atomic && i.may_spin;
  if (i.is_volatile && (!i.revises || r.exchanged)) return;
  const bool scattered = rows.count == 0 || rows.count > 2;
  Mask alike = checker.against_scattered(r.scatters, true);
  if (a.write) alike |= checker.against_scattered(r.gathers, false);
  if (scattered && !a.write) {
    checker.keep(r.gathers, a.mask);
    if (r.last_global_write < r.floor[w.number] || !r.written.meets(a.low, a.high)) return;
  }
  for (const Row& row : rows)
    checker.run(row.low, row.high, row.first, a.mask, a.shape == Access::Shape::uniform, false, alike != 0);
  if (rows.count == 0) {
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(m));
      if (checker.run(a.address[l], a.address[l] + a.size, l, 1u << l, true, true, false)) alike |= 1u << l;
    }
  }
  if (scattered && a.write) checker.keep(r.scatters, a.mask & ~alike & ~checker.meeting());
}

}  // namespace sim
