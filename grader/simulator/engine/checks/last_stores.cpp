#include "engine/checks/last_stores.h"

#include <bit>

#include "engine/execution.h"

namespace sim {
namespace {

bool meets(const Element& element, Address low, Address high) {
  return low < element.address + element.bytes && element.address < high;
}

}  // namespace

void LastStores::watch(std::vector<Element> elements) {
  elements_ = std::move(elements);
  stores_.assign(elements_.size(), {});
}

void LastStores::stored(const Warp& w, const Instruction& i, const Access& a) {
  if (i.polls) return;  // it changes nothing
  const LaunchState& launch = w.worker->launch;
  for (std::size_t n = 0; n < elements_.size(); ++n) {
    if (!meets(elements_[n], a.low, a.high)) continue;
    Mask here = 0;
    for (Mask m = a.mask; m; m &= m - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(m));
      here |= Mask{meets(elements_[n], a.address[lane], a.address[lane] + a.size)} << lane;
    }
    if (!here) continue;
    const auto last =
        static_cast<unsigned>(w.descending ? std::countr_zero(here) : lane_count - 1 - std::countl_zero(here));
    const char* does = a.atomic ? "updates" : "writes";
    const std::lock_guard lock(mutex_);
    stores_[n] = {LastStore::By::kernel, std::string(launch.program.kernel),
                  launch.at(i.site, *w.block, w.number, last, does, a.size)};
  }
}

void LastStores::copied(Address to, std::size_t bytes) {
  for (std::size_t n = 0; n < elements_.size(); ++n) {
    if (meets(elements_[n], to, to + bytes)) stores_[n] = {LastStore::By::copy};
  }
}

}  // namespace sim
