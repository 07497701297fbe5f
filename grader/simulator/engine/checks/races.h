// What the race checker remembers: of shared memory per block, of global memory per launch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "engine/machine.h"

namespace sim {

struct SharedRaces {
  // A stamp: the block's clock at an access, and the thread. 0: never.
  static constexpr unsigned thread_bits = 10;
  std::uint32_t clock = 1;
  std::array<std::array<std::uint32_t, lane_count>, lane_count> known{};   // [me][other warp]: its accesses before are ordered
  std::array<std::array<std::uint32_t, lane_count>, lane_count> synced{};  // [warp][lane]: its last meeting with other lanes
  std::array<std::uint32_t, lane_count> floor{};                           // [me]: the smallest of known[me]
  // Per granule: the last plain write, the last atomic one, and two reads; and where they stand in the code. The top bit of
  // a read's place: volatile.
  std::vector<std::uint32_t> writer, updater, reader, other_reader, writer_site, updater_site, reader_site, other_site;
  bool updates = false;  // an atomic has been seen since the block began
  unsigned shift = 2;  // log2 of the bytes that share a stamp
};

// Which blocks have touched which global memory in this launch, and what they have published since.
struct GlobalRaces;
class Memory;
struct LaunchState;
GlobalRaces* make_global_races(const Memory&);
void destroy_global_races(GlobalRaces*);
void begin_launch(GlobalRaces&, const LaunchState&);

}  // namespace sim
