// What has stored last into the elements that the judge asks about.
#pragma once

#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/machine.h"

namespace sim {

class LastStores {
 public:
  void watch(std::vector<Element>);
  bool any() const { return !elements_.empty(); }
  void stored(const Warp&, const Instruction&, const Access&);
  void copied(Address, std::size_t bytes);
  const std::vector<LastStore>& all() const { return stores_; }  // in the order of the elements

 private:
  std::mutex mutex_;
  std::vector<Element> elements_;
  std::vector<LastStore> stores_;
};

}  // namespace sim
