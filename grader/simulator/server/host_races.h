// Races between the device and the host: managed or pinned memory that the host uses while a kernel or a copy may still
// do so, since nothing has waited for it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "../device.h"
#include "report.h"
#include "timeline.h"

namespace sim {

class HostRaces {
 public:
  // A kernel, or a call of the runtime: then without a file, and its pieces without lines.
  void add(const Timeline&, Footprint);
  // What the host must not read or must not write now.
  struct Range {
    Address low, high;
    bool written;  // by the device
  };
  std::vector<Range> ranges(const Timeline&);
  // The host has used such a range. `where` tells which code that was.
  void accessed(Report&, const Timeline&, Address, bool writes, const Device&, Facts where);
  void clear() { works_.clear(); }

 private:
  struct Work {
    Moment moment;
    Footprint touched;
  };
  void forget_what_is_over(const Timeline&);

  std::deque<Work> works_;
};

}  // namespace sim
