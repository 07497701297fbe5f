// What the checkers found, one entry per place.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "device.h"

namespace sim {

class Findings {
 public:
  // Whether there is one of this kind at the place, so that nothing is worth finding out there.
  bool has(std::string_view kind, std::string_view kernel, std::string_view file, unsigned line, Severity) const;
  void add(Finding);
  // The same for a race between blocks: it takes the place of one within a block, which a barrier would seem to mend.
  bool has_between_blocks(std::string_view kind, std::string_view kernel, std::string_view file, unsigned line) const;
  void add_between_blocks(Finding);
  std::vector<Finding> take();

 private:
  using Key = std::tuple<std::string, std::string, std::string, unsigned, Severity>;
  mutable std::mutex mutex_;
  std::set<Key> keys_;
  std::vector<Finding> list_;
};

}  // namespace sim
