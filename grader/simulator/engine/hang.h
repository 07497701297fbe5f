// What ends a kernel that does not end by itself: budgets of warp instructions, and the loop that used them up.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "engine/machine.h"

namespace sim {

struct LaunchState;
struct WarpState;

// What one warp does while it is watched: its jumps back, and where it accesses memory.
class Trail {
 public:
  struct Loop {
    std::uint32_t first = 0, last = 0;  // instructions: where the jump leads, and the jump
    std::uint32_t depth = 0;            // calls that it is in
    std::uint64_t rounds = 0;
  };
  struct Look {
    const Instruction* instruction = nullptr;
    ptx::Space space = ptx::Space::global;
    Address address = 0;
    bool moves = false;  // to other addresses
    bool writes = false;
    bool swaps = false;  // an atomicCAS that found what it compares with
  };

  explicit Trail(const Warp& warp) : warp_(&warp) {}
  void jumped(const Warp&, std::uint32_t from, std::uint32_t to, std::uint32_t depth);
  void accessed(const Warp&, const Instruction&, const Access&);

  // The loop that was not left: the outermost one that the warp went round more than once.
  const Loop* loop() const;
  // The accesses within a loop.
  std::vector<Look> looks(const Loop&) const;

 private:
  const Warp* warp_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Loop> loops_;
  std::map<std::uint32_t, Look> looks_;
};

// Whether the launch has used up a budget, after `total` warp instructions of it. If so, it is ended, with a finding
// that names the loop which `state`, or another warp of its block, is in.
bool over_budget(LaunchState&, WarpState& state, std::uint64_t total);

}  // namespace sim
