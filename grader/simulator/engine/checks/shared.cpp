// initcheck and racecheck of shared memory.
//
// Every granule (4 bytes; 2 or 1 if the kernel accesses as few) remembers its last writer and two of its last readers
// as stamps of clock and thread. The clock of a block moves at all that orders. An access is ordered after an earlier
// one by causality.h. A write that stores what is there already harms nobody. Reads are mostly followed by a barrier of
// all warps and not by a write: they are put into their granules only when something else comes first.
#include <algorithm>
#include <bit>
#include <cstring>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"
#include "engine/hooks.h"

namespace sim {
namespace {

constexpr std::uint32_t thread_mask = (1u << SharedRaces::thread_bits) - 1;
constexpr std::uint32_t polled = 1u << 31;

std::uint32_t clock_of(std::uint32_t stamp) { return stamp >> SharedRaces::thread_bits; }
std::uint32_t thread_of(std::uint32_t stamp) { return stamp & thread_mask; }

// Does the store leave these bytes as they are?
bool silent(const Warp& w, const Access& a, unsigned lane, std::uint64_t granule, unsigned shift) {
  if (a.atomic) return false;
  const std::uint64_t first = granule << shift, last = first + (1u << shift);
  for (std::uint64_t at = std::max(first, a.address[lane]); at < std::min(last, a.address[lane] + a.size); ++at) {
    const auto offset = at - a.address[lane];
    if (a.value[offset / a.element][lane * a.element + offset % a.element] != w.shared[at]) return false;
  }
  return true;
}

void report_race(Warp& w, const Instruction& i, const Access& a, unsigned lane, std::uint32_t stamp, std::uint32_t site,
                 bool other_writes, std::uint64_t granule) {
  LaunchState& launch = w.worker->launch;
  const std::uint32_t other = thread_of(stamp);
  const bool same_warp = other / lane_count == w.number;
  const char* kind = same_warp ? "race_warp" : "race_shared";
  if (launch.seen(kind, i.site)) return;
  const char* mistake = mistake_of_one_statement(launch.program, i.site, a.write, site, other_writes);
  launch.report(
      kind, mistake ? mistake : missing_order(*w.block->races, stamp, w.number, lane), i.site,
      {launch.at(i.site, *w.block, w.number, lane, reads_or_writes(a), a.size),
       launch.at(site, *w.block, other / lane_count, other % lane_count, other_writes ? "writes" : "reads")},
      both({{"byte", granule << w.block->races->shift}}, launch.overlap(i.site, a.write, site, other_writes)));
}

void report_copy(Warp& w, const Instruction& i, const Access& a, unsigned lane, std::uint64_t granule) {
  LaunchState& launch = w.worker->launch;
  const SharedRaces& r = *w.block->races;
  if (launch.seen("race_shared", i.site)) return;
  const std::uint32_t other = r.filling[granule] - 1u;
  launch.report("race_shared", "copy", i.site,
                {launch.at(i.site, *w.block, w.number, lane, reads_or_writes(a), a.size),
                 launch.at(r.filling_site[granule], *w.block, other / lane_count, other % lane_count, "copies")},
                {{"byte", granule << r.shift}});
}

struct Checker {
  Warp& w;
  const Instruction& i;
  const Access& a;
  SharedRaces& r;

  // Reads what others may be writing, as it should.
  bool polls() const { return !a.write && (i.is_volatile || a.atomic); }
  std::uint32_t site_of_read() const { return i.site | (polls() ? polled : 0); }
  std::uint32_t stamp_of(unsigned lane) const {
    return r.clock << SharedRaces::thread_bits | (w.number * lane_count + lane);
  }
  // Stamps below are ordered before every lane of the warp.
  std::uint32_t floor() const { return r.floor[w.number] << SharedRaces::thread_bits; }

  // Two volatile accesses of different warps: a flag is handed over so. Within a warp they are no better than others.
  bool both_strong(std::uint32_t stamp, std::uint32_t site) const {
    return i.is_volatile && site & polled && thread_of(stamp) / lane_count != w.number;
  }

  // A read with nothing written before it that matters: puts it beside the other readers. False: not so simple.
  bool read_quickly(std::uint64_t g, std::uint32_t stamp) {
    const std::uint32_t floor = this->floor(), own = thread_of(stamp);
    if (r.updates && r.updater[g] >= floor && !polls()) return false;
    const std::uint32_t writer = r.writer[g], reader = r.reader[g];
    if (writer >= floor && thread_of(writer) != own) return false;
    if (reader >= floor && thread_of(reader) != own) {
      const bool mine = thread_of(reader) / lane_count == w.number, known = r.other_reader[g] >= floor;
      if (known && (mine || thread_of(r.other_reader[g]) / lane_count == w.number)) return true;
      if (mine) return false;
      if (!ordered(r, reader, w.number, 0)) {
        r.other_reader[g] = reader;
        r.other_site[g] = r.reader_site[g];
      }
    }
    r.reader[g] = stamp;
    r.reader_site[g] = site_of_read();
    return true;
  }

  // Whether of a read that begins again after `period` lanes the first two turns say all: what was written is ordered
  // before every lane of the warp, and no lane of the other turns is the last reader.
  bool two_turns_suffice(unsigned period) const {
    const std::uint32_t floor = this->floor();
    if (2 * period >= lane_count || r.updates || r.in_flight || i.is_volatile) return false;
    for (unsigned l = 0; l < period; ++l) {
      for (std::uint64_t g = a.address[l] >> r.shift; g <= (a.address[l] + a.size - 1) >> r.shift; ++g) {
        const std::uint32_t reader = thread_of(r.reader[g]);
        if (r.writer[g] >= floor || (reader / lane_count == w.number && reader % lane_count >= 2 * period))
          return false;
      }
    }
    return true;
  }

  // The two turns' reads of one granule. After nothing that is not ordered, both are kept; after one of another warp,
  // that and the first.
  void two_turns(unsigned lane, unsigned period, std::uint64_t g) {
    const std::uint32_t floor = this->floor(), reader = r.reader[g], other = r.other_reader[g], stamp = stamp_of(lane),
                        site = site_of_read();
    const auto of_this_warp = [&](std::uint32_t earlier) {
      return earlier >= floor && thread_of(earlier) / lane_count == w.number;
    };
    if (reader < floor && other < floor) {
      r.other_reader[g] = stamp;
      r.other_site[g] = site;
      r.reader[g] = stamp + period;
    } else if (reader >= floor && !of_this_warp(reader) && !of_this_warp(other) && !ordered(r, reader, w.number, 0)) {
      r.other_reader[g] = reader;
      r.other_site[g] = r.reader_site[g];
      r.reader[g] = stamp;
    } else {
      one(lane, g);
      one(lane + period, g);
      return;
    }
    r.reader_site[g] = site;
  }

  // "Causality Order": what a strong read has observed precedes what its thread does next.
  bool observed(std::uint32_t stamp, std::uint64_t g) const {
    const auto look = r.looks.find(g << 5 | w.number);
    return look != r.looks.end() && look->second >= clock_of(stamp);
  }

  // The store of another lane in this very instruction, of the same value.
  bool same_as_lane(std::uint32_t stamp, std::uint32_t site, unsigned lane) const {
    const std::uint32_t other = thread_of(stamp) % lane_count;
    if (a.atomic || clock_of(stamp) != r.clock || (site & ~polled) != i.site ||
        thread_of(stamp) / lane_count != w.number || !(a.mask >> other & 1))
      return false;
    return a.address[other] == a.address[lane] && store_alike(a, lane, other);
  }

  // In Triton only the compiler uses shared memory, and threads that hold the same element may have rounded
  // differently.
  bool copies(std::uint32_t site) const {
    return !a.atomic && w.worker->launch.program.of_triton && (site & ~polled) == i.site;
  }

  void one(unsigned lane, std::uint64_t g) {
    const std::uint32_t stamp = stamp_of(lane);
    if (r.in_flight && r.filling[g]) return report_copy(w, i, a, lane, g);
    if (a.write || !read_quickly(g, stamp)) compare(lane, g, stamp);
  }
  [[gnu::noinline]] void compare(unsigned lane, std::uint64_t g, std::uint32_t stamp) {
    const std::uint32_t writer = r.writer[g];
    const std::uint32_t updater = r.updater[g];
    const auto quiet = [&] {
      return a.write && (silent(w, a, lane, g, r.shift) || same_as_lane(writer, r.writer_site[g], lane));
    };
    if (writer && !ordered(r, writer, w.number, lane) && !both_strong(writer, r.writer_site[g]) &&
        !(r.writer_site[g] & polled && observed(writer, g)) && !quiet() && !copies(r.writer_site[g])) {
      report_race(w, i, a, lane, writer, r.writer_site[g] & ~polled, true, g);
    } else if (updater && !a.atomic && !polls() && !ordered(r, updater, w.number, lane) && !observed(updater, g) &&
               !both_strong(updater, polled) && !quiet()) {
      report_race(w, i, a, lane, updater, r.updater_site[g], true, g);
    }
    if (a.write) {
      const auto against = [&](std::uint32_t reader, std::uint32_t site) {
        if (!reader || (a.atomic && site & polled) || both_strong(reader, site) || ordered(r, reader, w.number, lane) ||
            read_before_passing(r, reader, w.number) || quiet())
          return false;
        report_race(w, i, a, lane, reader, site & ~polled, false, g);
        return true;
      };
      if (!against(r.reader[g], r.reader_site[g])) against(r.other_reader[g], r.other_site[g]);
      (a.atomic ? r.updater : r.writer)[g] = stamp;
      if (a.atomic)
        r.updater_site[g] = i.site;
      else
        r.writer_site[g] = i.site | (i.is_volatile ? polled : 0);
      r.updates |= a.atomic;
    } else {
      std::uint32_t& reader = r.reader[g];
      if (reader && thread_of(reader) != thread_of(stamp) && !ordered(r, reader, w.number, lane)) {
        // Of two readers at the same time both count; those of different warps say more.
        if (thread_of(reader) / lane_count != w.number || r.other_reader[g] == 0 ||
            ordered(r, r.other_reader[g], w.number, lane)) {
          r.other_reader[g] = reader;
          r.other_site[g] = r.reader_site[g];
        }
      }
      reader = stamp;
      r.reader_site[g] = site_of_read();
    }
  }
};

// Whether each lane accesses what lies behind the lane before it.
bool ascending(const Access& a) {
  Address next = 0;
  for (Mask m = a.mask; m; m &= m - 1) {
    const Address at = a.address[std::countr_zero(m)];
    if (at < next) return false;
    next = at + a.size;
  }
  return true;
}

// The same as quick() of lanes that go down a column.
bool quick_apart(const Warp& w, const Instruction& i, const Access& a, SharedRaces& r) {
  if (r.in_flight || !ascending(a)) return false;
  const std::uint32_t floor = r.floor[w.number] << SharedRaces::thread_bits, now = r.clock << SharedRaces::thread_bits;
  const std::uint32_t granules = a.size >> r.shift, thread = w.number * lane_count;
  const auto each_granule = [&](auto f) {
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(m));
      const std::uint64_t g = a.address[lane] >> r.shift;
      for (std::uint32_t n = 0; n < granules; ++n) f(g + n, thread + lane);
    }
  };
  const std::uint32_t *writer = r.writer.data(), *reader = r.reader.data(), *other = r.other_reader.data();
  std::uint32_t trouble = 0;
  each_granule([&](std::uint64_t g, std::uint32_t own) {
    trouble |= writer[g] >= floor && (writer[g] & thread_mask) != own;
    trouble |= reader[g] >= floor && (reader[g] & thread_mask) != own;
    trouble |= a.write && other[g] >= floor;
  });
  if (trouble) return false;
  std::uint32_t *into = (a.write ? r.writer : r.reader).data(),
                *sites = (a.write ? r.writer_site : r.reader_site).data();
  each_granule([&](std::uint64_t g, std::uint32_t own) {
    into[g] = now | own;
    sites[g] = i.site;
  });
  return true;
}

// Lanes in a row, and nothing before them but what is ordered or their own: the common case.
bool quick(const Warp& w, const Instruction& i, const Access& a, SharedRaces& r) {
  if (r.updates || a.atomic || i.is_volatile || a.low % (1u << r.shift) || a.size % (1u << r.shift)) return false;
  if (a.shape == Access::Shape::scattered) return quick_apart(w, i, a, r);
  if (!in_a_row(a)) return false;
  const std::uint64_t first = a.low >> r.shift, per_lane = a.size >> r.shift;
  const auto count = static_cast<std::uint32_t>((a.high - a.low) >> r.shift);
  const std::uint32_t floor = r.floor[w.number] << SharedRaces::thread_bits, now = r.clock << SharedRaces::thread_bits;
  const std::uint32_t thread = w.number * lane_count + static_cast<std::uint32_t>(std::countr_zero(a.mask));
  const std::uint32_t *writer = &r.writer[first], *reader = &r.reader[first], *other = &r.other_reader[first];
  const unsigned lane_shift = static_cast<unsigned>(std::countr_zero(per_lane));
  std::uint32_t trouble = 0;
  for (std::uint32_t n = 0; n < count; ++n) {  // without branches: several granules at a time
    const std::uint32_t own = thread + (n >> lane_shift);
    trouble |= (writer[n] >= floor) & ((writer[n] & thread_mask) != own);
    trouble |= (reader[n] >= floor) & ((reader[n] & thread_mask) != own);
  }
  for (std::uint32_t n = 0; n < count && a.write; ++n) trouble |= other[n] >= floor;
  if (r.in_flight) {
    for (std::uint32_t n = 0; n < count; ++n) trouble |= r.filling[first + n];
  }
  if (trouble) return false;
  std::uint32_t* into = a.write ? &r.writer[first] : &r.reader[first];
  std::uint32_t* sites = a.write ? &r.writer_site[first] : &r.reader_site[first];
  for (std::uint32_t n = 0; n < count; ++n) {
    into[n] = now | (thread + (n >> lane_shift));
    sites[n] = i.site;
  }
  return true;
}

// After how many lanes a read begins again: all lanes read the few sums of their block.
unsigned period_of(const Access& a) {
  unsigned period = lane_count;
  if (a.write || a.mask != all_lanes || a.shape == Access::Shape::contiguous) return period;
  while (period > 1 && std::equal(a.address, a.address + period / 2, a.address + period / 2)) period /= 2;
  return period;
}

// Lanes of a read without those that follow two others at the same place: two stand for all.
Mask first_two_of_each_run(const Access& a) {
  Mask same = 0;  // as the lane before
  for (unsigned l = 1; l < lane_count; ++l) same |= Mask{a.address[l] == a.address[l - 1]} << l;
  same &= a.mask & a.mask << 1;
  return a.mask & ~(same & same << 1);
}

// Bytes around a read that are worth a look as a whole.
constexpr Address most_between = 1024;

// Whether all that the lanes access has been written, in pieces of type T.
template <class T> bool lanes_written(const std::uint8_t* written, const Access& a) {
  auto all = static_cast<T>(0x0101010101010101);
  const T set = all;
  for (Mask m = a.mask; m; m &= m - 1) {
    const std::uint8_t* at = written + a.address[std::countr_zero(m)];
    for (std::uint32_t n = 0; n < a.size; n += sizeof(T)) {
      T piece;
      std::memcpy(&piece, at + n, sizeof piece);
      all &= piece;
    }
  }
  return all == set;
}
bool lanes_written(const std::uint8_t* written, const Access& a) {
  switch (a.size) {
    case 1: return lanes_written<std::uint8_t>(written, a);
    case 2: return lanes_written<std::uint16_t>(written, a);
    case 4: return lanes_written<std::uint32_t>(written, a);
    default: return lanes_written<std::uint64_t>(written, a);
  }
}

void check_written(Warp& w, const Instruction& i, const Access& a) {
  auto& written = w.block->written;
  LaunchState& launch = w.worker->launch;
  if (in_a_row(a)) {
    if (a.write && !a.atomic) {
      std::memset(written.data() + a.low, 1, a.high - a.low);
      return;
    }
  }
  if ((!a.write || a.atomic) && a.high - a.low <= most_between &&
      !std::memchr(written.data() + a.low, 0, a.high - a.low))
    return;
  if (!a.write && lanes_written(written.data(), a)) return;
  Missing missing{};
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto l = static_cast<std::uint32_t>(std::countr_zero(m));
    std::uint8_t* at = written.data() + a.address[l];
    if (!a.write || (a.atomic && !i.overwrites)) {
      for (std::uint32_t n = 0; n < a.size; ++n) missing[l] |= std::uint32_t{at[n] == 0} << n;
    }
    if (a.write) std::fill(at, at + a.size, std::uint8_t{1});
  }
  if (launch.place(i.site).reads_ahead) return;
  tell_unwritten(w, i, a, missing, "uninit_shared", [&](unsigned lane) { return Facts{{"byte", a.address[lane]}}; });
}

}  // namespace

bool read_before_passing(const SharedRaces& r, std::uint32_t stamp, std::uint32_t warp) {
  return thread_of(stamp) / lane_count == warp && clock_of(stamp) < r.values_passed[warp];
}

bool ordered(const SharedRaces& r, std::uint32_t stamp, std::uint32_t warp, std::uint32_t lane) {
  const std::uint32_t clock = clock_of(stamp), other = thread_of(stamp);
  const std::uint32_t other_warp = other / lane_count;
  if (clock < r.floor[warp]) return true;
  if (clock < r.known[warp][other_warp] || other == warp * lane_count + lane) return true;
  if (!r.views_used) return false;
  const Clocks* own = view_of(r, warp, lane).known.of(r.block);
  return own && own->covers(other, clock);
}

namespace {

// Puts an access into its granules, and compares it with what is there.
void note(Warp& w, const Instruction& i, const Access& a, SharedRaces& r) {
  if (quick(w, i, a, r)) return;
  Checker checker{w, i, a, r};
  if (a.shape == Access::Shape::uniform && !a.write) {
    // Two lanes stand for all that read the same.
    const Mask first = a.mask & -a.mask, rest = a.mask & ~first, second = rest & -rest;
    for (Mask m = first | second; m; m &= m - 1) {
      for (std::uint64_t g = a.low >> r.shift; g <= (a.high - 1) >> r.shift; ++g)
        checker.one(static_cast<unsigned>(std::countr_zero(m)), g);
    }
    return;
  }
  const unsigned period = period_of(a);
  const bool turns = checker.two_turns_suffice(period);
  for (Mask m = turns ? (1u << period) - 1 : a.write ? a.mask : first_two_of_each_run(a); m; m &= m - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(m));
    for (std::uint64_t g = a.address[l] >> r.shift; g <= (a.address[l] + a.size - 1) >> r.shift; ++g) {
      if (turns)
        checker.two_turns(l, period, g);
      else
        checker.one(l, g);
    }
  }
}

// Whether a read can wait until it is noted: no write since the last barrier meets it.
bool put_off(Warp& w, const Instruction& i, const Access& a, SharedRaces& r) {
  SharedRaces::Reads& reads = r.unnoted;
  if (a.write || a.atomic || i.is_volatile || r.updates || r.in_flight || reads.list.size() == reads.most ||
      (r.last_shared_write >= r.floor[w.number] && r.shared_written.meets(a.low, a.high)))
    return false;
  reads.list.push_back({&w, &i, a.low, a.high, a.mask, a.size, a.shape});
  reads.around.extend(a.low, a.high);
  if (a.shape == Access::Shape::scattered)
    reads.addresses.insert(reads.addresses.end(), a.address, a.address + lane_count);
  return true;
}

}  // namespace

void note_reads(SharedRaces& r) {
  if (r.unnoted.list.empty()) return;
  const auto* at = r.unnoted.addresses.data();
  for (const SharedRaces::Read& read : r.unnoted.list) {
    Access a;
    a.shape = read.shape;
    a.space = ptx::Space::shared;
    a.size = read.size;
    a.mask = read.mask;
    a.low = read.low;
    a.high = read.high;
    if (a.shape == Access::Shape::scattered) {
      std::copy(at, at + lane_count, a.address);
      at += lane_count;
    } else {
      const auto first = static_cast<unsigned>(std::countr_zero(a.mask));
      const std::uint64_t apart = a.shape == Access::Shape::contiguous ? a.size : 0;
      for (unsigned l = 0; l < lane_count; ++l) a.address[l] = a.low + (std::uint64_t{l} - first) * apart;
    }
    note(*read.warp, *read.instruction, a, r);
  }
  r.unnoted.clear();
}

void check_shared(Warp& w, const Instruction& i, const Access& a) {
  const Options& o = w.worker->launch.options;
  if (o.initcheck) check_written(w, i, a);
  if (!o.racecheck || w.worker->launch.faulted.load(std::memory_order_relaxed)) return;
  SharedRaces& r = *w.block->races;
  if (put_off(w, i, a, r)) return;
  const Address granule = Address{1} << r.shift;
  if (i.is_volatile || r.unnoted.around.meets(a.low & -granule, (a.high + granule - 1) & -granule)) note_reads(r);
  if (a.write) {
    r.shared_written.extend(a.low & -granule, (a.high + granule - 1) & -granule);
    r.last_shared_write = r.clock;
  }
  note(w, i, a, r);
  if (i.strong) hand_over(w, i, a);
}

void tick(SharedRaces& r) {
  note_reads(r);
  if (++r.clock < SharedRaces::last_clock) return;
  // The clock is used up: everything before is forgotten, which can only hide a race.
  forget_views(r);
  r.worn_out = true;
  for (auto* list : {&r.writer, &r.updater, &r.reader, &r.other_reader}) std::fill(list->begin(), list->end(), 0);
  for (auto& row : r.known) row.fill(1);
  r.floor.fill(1);
  r.values_passed.fill(0);
  r.global_writes = r.global_reads = {};
  r.last_global_write = r.last_global_read = r.last_shared_write = 0;
  r.unnoted_rows.clear();
  r.gathers = r.scatters = {};
  r.clock = 1;
}

void begin_block(Block& block, Worker& worker) {
  const Options& o = worker.launch.options;
  const std::uint32_t size = worker.launch.shared_size, own = size - worker.launch.program.reserved_shared;
  if (o.initcheck) {
    block.written.assign(size + 64, 0);
    std::fill(block.written.begin() + own, block.written.begin() + size,
              std::uint8_t{1});  // its users clear their bits
  }
  if (!o.racecheck) return;
  if (!block.races) {
    block.races = std::make_unique<SharedRaces>();
    block.races->shift = static_cast<unsigned>(std::countr_zero(worker.launch.program.shared_granule));
    block.races->piece_shift = 7 + static_cast<unsigned>(std::countr_zero(worker.launch.program.global_granule));
    const std::size_t count = (size >> block.races->shift) + 64;
    SharedRaces& r = *block.races;
    for (auto* list : {&r.writer, &r.updater, &r.reader, &r.other_reader, &r.writer_site, &r.updater_site,
                       &r.reader_site, &r.other_site})
      list->assign(count, 0);
  }
  SharedRaces& r = *block.races;
  r.updates = r.exchanged = false;
  r.locks = {};
  forget_views(r);
  r.block = block.number;
  forget_copies(r);
  r.unnoted.clear();
  r.unnoted_rows.clear();
  if (r.clock > SharedRaces::last_clock / 2) r.clock = SharedRaces::last_clock;  // now, and not within the block
  tick(r);
  r.worn_out = false;
  for (std::size_t n = 0; n < block.warps.size(); ++n) r.known[n].fill(r.clock);
  r.values_passed.fill(0);
  r.floor.fill(r.clock);
  r.written = r.read = r.shared_written = {};
}

void outside_own_mask(Warp& w, const Instruction& i, Mask lanes, Mask members) {
  LaunchState& launch = w.worker->launch;
  if (!launch.options.synccheck || launch.faulted || launch.seen("missing_lanes", i.site)) return;
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(lanes));
  launch.report("missing_lanes", "not_named", i.site, {launch.at(i.site, *w.block, w.number, lane)},
                {{"mask", members}});
}

void needs_whole_warp(Warp& w, const Instruction& i, Mask lanes) {
  LaunchState& launch = w.worker->launch;
  if (!launch.options.synccheck || launch.faulted || launch.seen("exited_lanes", i.site)) return;
  const auto missing = static_cast<std::uint32_t>(std::countr_one(lanes));
  const bool started = w.started >> missing & 1;
  launch.report("exited_lanes", started ? "matrix_of_exited" : "matrix_of_absent", i.site,
                {launch.at(i.site, *w.block)}, {{"warp", w.number}, {"lane", missing}});
}

// "Warp Matrix Functions" of the CUDA C++ Programming Guide: the leading dimension is a multiple of 16 bytes.
void rows_apart(Warp& w, const Instruction& i, std::uint64_t bytes) {
  constexpr std::uint64_t unit = 16;
  LaunchState& launch = w.worker->launch;
  if (bytes % unit == 0 || !launch.options.memcheck || launch.faulted || launch.seen("misaligned", i.site)) return;
  launch.report("misaligned", "matrix_rows", i.site, {launch.at(i.site, *w.block)}, {{"apart", bytes}});
}

void read_from_exited(Warp& w, const Instruction& i, std::uint32_t lane, std::uint32_t source) {
  LaunchState& launch = w.worker->launch;
  if (!launch.options.synccheck || launch.faulted || launch.seen("exited_lanes", i.site)) return;
  const bool started = w.started >> source & 1;
  launch.report("exited_lanes", started ? "shuffle_from_exited" : "shuffle_from_absent", i.site,
                {launch.at(i.site, *w.block, w.number, lane)}, {{"lane", source}});
}

}  // namespace sim
