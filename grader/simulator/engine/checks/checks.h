// Where the engine tells the checkers what happens.
#pragma once

#include <array>
#include <bit>

#include "engine/execution.h"

namespace sim {

// Lanes of one warp have met in a collective or a barrier: what they did before is ordered before what they do next.
void synchronised(Warp&, Mask);
// Lanes of one warp have given each other values, as by a shuffle, which orders no writes.
void passed_values(Warp&, Mask);
// Lanes of these warps have met at a barrier of their block.
using LanesOfWarps = std::array<Mask, lane_count>;
void synchronised(Block&, std::uint32_t barrier, const LanesOfWarps&);
// Lanes have arrived at a barrier of their block without waiting for it.
void arrived(Warp&, std::uint32_t barrier, Mask);
// Lanes that call a collective with a member mask that leaves them out.
void outside_own_mask(Warp&, const Instruction&, Mask lanes, Mask members);

// A fence, as the checker of global memory sees it.
void fence_global(Warp&, const Instruction&);

// Lanes that follow each other access what does: all of [low, high).
inline bool in_a_row(const Access& a) {
  return a.shape == Access::Shape::contiguous && (a.mask & (a.mask + (a.mask & -a.mask))) == 0;
}

// Lanes that follow each other, from `first` on, access what does: all of [low, high).
struct Row {
  Address low, high;
  unsigned first;
};
// An access as rows, most of which have more than one lane; none if it is scattered. Half a warp on one row of a matrix
// and half on the next are two.
struct Rows {
  static constexpr unsigned half = lane_count / 2;
  std::array<Row, half> row;
  unsigned count = 0;

  explicit Rows(const Access& a) {
    const auto begin = static_cast<unsigned>(std::countr_zero(a.mask));
    if (a.shape == Access::Shape::uniform || in_a_row(a)) {
      row[count++] = {a.low, a.high, begin};
      return;
    }
    if (a.mask == all_lanes && half_in_a_row(a, 0) && half_in_a_row(a, half)) {
      for (const unsigned first : {0u, half})
        row[count++] = {a.address[first], a.address[first + half - 1] + a.size, first};
      return;
    }
    Mask follows = 0;  // lanes whose predecessor accesses what comes just before
    for (unsigned l = 1; l < lane_count; ++l) follows |= Mask{a.address[l] == a.address[l - 1] + a.size} << l;
    const Mask starts = a.mask & ~(follows & a.mask << 1);
    if (count_lanes(starts) > row.size()) return;
    for (Mask m = starts; m; m &= m - 1) {
      const auto first = static_cast<unsigned>(std::countr_zero(m));
      const Mask rest = ~(a.mask & ~starts) & ~0u << first << 1;  // where the row can end
      const auto end = rest ? static_cast<unsigned>(std::countr_zero(rest)) : lane_count;
      row[count++] = {a.address[first], a.address[end - 1] + a.size, first};
    }
  }
  // Asked first, as vectors do it well: many rows have as many pieces as half a warp has lanes.
  static bool half_in_a_row(const Access& a, unsigned first) {
    Address apart = 0, expected = a.address[first];
    for (unsigned l = first; l < first + half; ++l, expected += a.size) apart |= a.address[l] ^ expected;
    return apart == 0;
  }
  const Row* begin() const { return row.data(); }
  const Row* end() const { return row.data() + count; }
};

// Clears what is known of a block's shared memory.
void begin_block(Block&, Worker&);

// Reports what could not be told before a block's end.
void end_block(const Block&);

// For initcheck: these bytes have been written, by a store that watch() does not see.
void note_written(const Memory&, Address, std::size_t bytes);

// A store of what is there already harms nobody.
bool silent(const Access&, unsigned lane);
// Whether two lanes store the same.
bool store_alike(const Access&, unsigned lane, unsigned other);
// Whether an access reads or writes, for races: what an atomic does is a write.
inline const char* reads_or_writes(const Access& a) { return a.write ? "writes" : "reads"; }
// A lane of an access, and which byte of which allocation that is, if it is in one.
Place accessing(const Warp&, const Instruction&, const Access&, unsigned lane);
Facts target(const Warp&, const Access&, unsigned lane);
// Facts of more than one source.
inline Facts both(Facts some, Facts others) {
  some.insert(some.end(), std::move_iterator(others.begin()), std::move_iterator(others.end()));
  return some;
}

// What a load has read that nothing has written, for when its value decides something.
template <class F> void remember_unwritten(LaunchState& launch, std::uint32_t site, F finding) {
  const std::lock_guard lock(launch.mutex);
  const auto [at, fresh] = launch.unwritten_loads.try_emplace(site);
  if (fresh) at->second = finding();
}
// Of a read of bytes that nothing has written: where its value is followed, that is an error when it decides something,
// else at once. facts(lane) tell what a lane has read.
template <class F>
void tell_unwritten(Warp& w, const Instruction& i, const Access& a, const Missing& missing, const char* kind, F facts) {
  LaunchState& launch = w.worker->launch;
  const auto first = std::ranges::find_if(missing, [](auto bytes) { return bytes != 0; });
  if (first == missing.end() || launch.faulted) return;
  const auto of_first = [&] {
    const auto lane = static_cast<unsigned>(first - missing.begin());
    return launch.finding(kind, "read", i.site, {launch.at(i.site, *w.block, w.number, lane, "reads", a.size)},
                          facts(lane));
  };
  if (is_followed(w, i)) {
    remember_unwritten(launch, i.site, of_first);
    note_unwritten(w, i, a, missing, kind);
  } else if (!launch.seen(kind, i.site)) {
    launch.findings.add(of_first());
  }
}

// The parts of watch().
void note_store(const Warp&, const Instruction&, const Access&);  // of a kernel in Triton
void check_shared(Warp&, const Instruction&, const Access&);
void check_global(Warp&, const Instruction&, const Access&, const Rows&);
void check_within_block(Warp&, const Instruction&, const Access&, const Rows&);  // a part of check_global()
void check_lock(Warp&, const Instruction&, const Access&, SharedRaces&);          // a part of that
bool in_unfenced_lock(const SharedRaces&, std::uint32_t warp);  // has used what a lock guards, with no fence behind it
void count_global(Warp&, const Instruction&, const Access&, const Rows&);
void count_shared(Warp&, const Instruction&, const Access&);

}  // namespace sim
