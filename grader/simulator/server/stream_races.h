// Races between streams: kernels and copies that touch the same bytes, that no stream, event or wait of the host
// orders, and of which one writes. What each has touched is kept until the host has waited for it.
#pragma once

#include <deque>
#include <string>

#include "../device.h"
#include "report.h"
#include "timeline.h"

namespace sim {

class StreamRaces {
 public:
  // A kernel, or a call of the runtime: then without a file, and its pieces without lines.
  void add(Report&, const Timeline&, Footprint);
  void clear() { kept_.clear(); }

 private:
  struct Work {
    Moment moment;
    Footprint touched;
  };
  static void compare(Report&, const Work& earlier, const Work& later);

  std::deque<Work> kept_;
};

}  // namespace sim
