#include "engine/late.h"

#include "engine/execution.h"

namespace sim {
namespace {

constexpr std::size_t most_late = 4096;

}  // namespace

void LateReductions::settle_at(std::uint64_t block, const Access& a) {
  const auto own = of_blocks_.find(block);
  if (own == of_blocks_.end()) return;
  for (Mask m = a.mask; m; m &= m - 1) {
    const auto low = a.address[std::countr_zero(m)];
    for (const auto& late : own->second) {
      const auto at = reinterpret_cast<Address>(late.at);
      if (at < low + a.size && low < at + late.size) return settle(block);
    }
  }
}

void LateReductions::settle(std::uint64_t block) {
  const auto own = of_blocks_.find(block);
  if (own == of_blocks_.end()) return;
  for (const auto& late : own->second) late.apply(late.at, late.value);
  count_ -= own->second.size();
  of_blocks_.erase(own);
}

void LateReductions::settle_all() {
  while (!of_blocks_.empty()) settle(of_blocks_.begin()->first);
}

bool comes_late(const Warp& w, const Instruction& i) {
  const LaunchState& launch = w.worker->launch;
  return launch.options.order == Order::reversed && launch.options.threads <= 1 && launch.blocks > 1 &&
         !launch.launch.early && launch.program.draws && i.reduces && !i.acquires && !i.releases &&
         w.block->number % 2 == 1 && launch.late.count() < most_late;
}

void put_late(const Warp& w, const LateReduction& reduction) { w.worker->launch.late.add(w.block->number, reduction); }

}  // namespace sim
