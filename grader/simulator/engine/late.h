// Reductions that come late. An atomic without a result, as atomicAdd(&sum, x), is relaxed: no fence behind it, and
// others may be told of it, by another atomic, before they can see it ("Memory Consistency Model" of the PTX ISA). In
// the reversed order, those of every second block wait for a fence of the block, for an access of the block to the same
// place, until others wait in a loop, or for the end of the launch.
//
// In shared memory, those of a thread wait for a fence or a barrier of its warp, for a barrier of its block, or for its
// own access to the same place: neither that its warp goes on in step, nor a shuffle, orders them for other lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "engine/machine.h"

namespace sim {

struct LateReduction {
  std::byte* at;
  std::uint32_t size;
  std::uint64_t value;
  void (*apply)(std::byte* at, std::uint64_t value);
};

class LateReductions {
 public:
  void add(std::uint64_t block, const LateReduction& reduction) {
    of_blocks_[block].push_back(reduction);
    ++count_;
  }
  std::size_t count() const { return count_; }
  // Before an access of the block: what is at the same place takes place now.
  void settle_at(std::uint64_t block, const Access&);
  void settle(std::uint64_t block);
  void settle_all();

  void add_of_lane(const Warp&, std::uint32_t lane, const LateReduction& reduction);
  void settle_of_lanes_at(const Warp&, const Access&);
  void settle_of_lanes(const Warp&);
  void settle_of_lanes(const Block&);

 private:
  struct OfLane {
    std::uint32_t warp, lane;
    LateReduction reduction;
  };
  // Those that a condition picks take place, in order.
  template <class Condition> void settle_of_lanes(std::uint64_t block, Condition);

  std::unordered_map<std::uint64_t, std::vector<LateReduction>> of_blocks_;
  std::unordered_map<std::uint64_t, std::vector<OfLane>> of_lanes_;  // in shared memory, by block
  std::size_t count_ = 0;
};

}  // namespace sim
