// racecheck of shared memory handed over without a barrier of the block: by a fence and a flag, by an mbarrier, and by
// asynchronous copies. Clocks are kept per warp: coarser than the memory model, so that a correct program is never
// accused.
#include <algorithm>
#include <bit>

#include "engine/checks/checks.h"
#include "engine/checks/races.h"
#include "engine/hooks.h"

namespace sim {
namespace {

SharedRaces* races_of(const Warp& w) { return w.worker->launch.options.racecheck ? w.block->races.get() : nullptr; }

// What the warp knows of the others, and all that it has done itself.
SharedRaces::Clocks knowledge(SharedRaces& r, std::uint32_t warp) {
  tick(r);
  SharedRaces::Clocks clocks = r.known[warp];
  clocks[warp] = r.clock;
  return clocks;
}

template <class F> void each_lane(Mask lanes, F f) {
  for (; lanes; lanes &= lanes - 1) f(static_cast<std::uint32_t>(std::countr_zero(lanes)));
}

// The copies of a thread whose group is before `group` are done: as if it had just written what they filled.
void finish(SharedRaces& r, std::uint32_t thread, std::uint32_t group) {
  auto& copies = r.copies[thread];
  const auto done = [&](const SharedRaces::Copy& c) {
    if (c.group >= group) return false;
    if (r.filling[c.granule] == thread + 1) {
      r.filling[c.granule] = 0;
      r.writer[c.granule] = r.clock << SharedRaces::thread_bits | thread;
      r.writer_site[c.granule] = c.site;
    }
    return true;
  };
  note_reads(r);
  r.shared_written = {0, ~Address{0}};
  r.last_shared_write = r.clock;
  r.in_flight -= std::erase_if(copies, done);
}

}  // namespace

void publish(SharedRaces& r, std::uint64_t granule, const SharedRaces::Clocks& clocks) {
  auto& all = r.published[granule];
  for (std::size_t n = 0; n < clocks.size(); ++n) all[n] = std::max(all[n], clocks[n]);
}

SharedRaces::Clocks released_to_all(SharedRaces& r, std::uint32_t warp) {
  const SharedRaces::Clocks clocks = knowledge(r, warp);
  for (std::size_t n = 0; n < clocks.size(); ++n) r.released[n] = std::max(r.released[n], clocks[n]);
  return clocks;
}

void released(Warp& w, std::uint64_t address) {
  if (SharedRaces* r = races_of(w)) publish(*r, address >> r->shift, knowledge(*r, w.number));
}

void acquired(Warp& w, std::uint64_t address) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  const auto found = r->published.find(address >> r->shift);
  if (found == r->published.end()) return;
  note_reads(*r);
  auto& known = r->known[w.number];
  for (std::size_t n = 0; n < known.size(); ++n) known[n] = std::max(known[n], found->second[n]);
}

void fence(Warp& w, const Instruction& i, Mask) {
  const bool of_the_block = i.target != 0;  // __threadfence_block orders nothing for other blocks
  if (!of_the_block) fence_global(w);
  SharedRaces* r = races_of(w);
  if (!r) return;
  fence_lock(*r, w.number);
  r->fenced[w.number] = released_to_all(*r, w.number);
  r->has_fenced |= 1u << w.number;
}

void copied(Warp& w, const Instruction& i, const Access& a) {
  SharedRaces* r = races_of(w);
  if (!r) return;
  if (r->filling.empty()) {
    r->filling.assign(r->writer.size(), 0);
    r->filling_site.assign(r->writer.size(), 0);
    r->copies.resize(w.block->threads);
    r->groups.assign(w.block->threads, 0);
  }
  each_lane(a.mask & ~a.outside, [&](std::uint32_t l) {
    const std::uint32_t thread = w.number * lane_count + l;
    for (std::uint64_t g = a.address[l] >> r->shift; g <= (a.address[l] + a.size - 1) >> r->shift; ++g) {
      r->copies[thread].push_back({g, r->groups[thread], i.site});
      r->filling[g] = static_cast<std::uint16_t>(thread + 1);
      r->filling_site[g] = i.site;
      ++r->in_flight;
    }
  });
}

void commit_copies(Warp& w, const Instruction&, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r || r->groups.empty()) return;
  each_lane(lanes, [&](std::uint32_t l) { ++r->groups[w.number * lane_count + l]; });
}

void await_copies(Warp& w, const Instruction& i, Mask lanes) {
  if (i.offset < 0) return finish_copies(w, lanes);
  SharedRaces* r = races_of(w);
  if (!r || !r->in_flight) return;
  each_lane(lanes, [&](std::uint32_t l) {
    const std::uint32_t thread = w.number * lane_count + l;
    const auto running = static_cast<std::uint32_t>(std::min<std::int64_t>(i.offset, r->groups[thread]));
    finish(*r, thread, r->groups[thread] - running);
  });
}

void finish_copies(Warp& w, Mask lanes) {
  SharedRaces* r = races_of(w);
  if (!r || !r->in_flight) return;
  each_lane(lanes, [&](std::uint32_t l) { finish(*r, w.number * lane_count + l, ~0u); });
}

void forget_copies(SharedRaces& r) {
  if (r.in_flight) std::fill(r.filling.begin(), r.filling.end(), 0);
  for (auto& copies : r.copies) copies.clear();
  r.in_flight = 0;
}

}  // namespace sim
