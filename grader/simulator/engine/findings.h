// What the checkers found, one entry per place.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "device.h"

namespace sim {

class Findings {
 public:
  // True if the place is new, so that a message is worth composing; else it is counted.
  bool again(std::string_view kind, std::string_view kernel, std::string_view file, unsigned line,
             std::uint64_t count = 1, Severity = Severity::error);
  void add(Finding);
  std::vector<Finding> take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, unsigned, Severity>;
  std::mutex mutex_;
  std::map<Key, std::size_t> index_;
  std::vector<Finding> list_;
};

}  // namespace sim
