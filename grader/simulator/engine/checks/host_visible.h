// What a launch does to managed and pinned memory, which the host may use at the same time.
#pragma once

#include <mutex>

#include "engine/checks/checks.h"

namespace sim {

class HostVisible {
 public:
  void clear() { touched_ = {}; }
  void add(const Warp&, const Instruction&, const Access&, const Rows&);
  Footprint take();  // in the order of the addresses

 private:
  std::mutex mutex_;
  Footprint touched_;
  std::size_t most_pieces_ = std::size_t{1} << 16;  // before those that overlap are joined
};

}  // namespace sim
