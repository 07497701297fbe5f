#include "engine/late.h"

#include "engine/execution.h"
#include "engine/isa/access.h"

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
  while (!of_lanes_.empty()) settle_of_lanes(of_lanes_.begin()->first, [](const OfLane&) { return true; });
}

void LateReductions::add_of_lane(const Warp& w, std::uint32_t lane, const LateReduction& reduction) {
  of_lanes_[w.block->number].push_back({w.number, lane, reduction});
  ++count_;
}

template <class Condition> void LateReductions::settle_of_lanes(std::uint64_t block, Condition condition) {
  const auto own = of_lanes_.find(block);
  if (own == of_lanes_.end()) return;
  count_ -= std::erase_if(own->second, [&](const OfLane& late) {
    const bool now = condition(late);
    if (now) late.reduction.apply(late.reduction.at, late.reduction.value);
    return now;
  });
  if (own->second.empty()) of_lanes_.erase(own);
}

void LateReductions::settle_of_lanes_at(const Warp& w, const Access& a) {
  settle_of_lanes(w.block->number, [&](const OfLane& late) {
    if (late.warp != w.number || !(a.mask >> late.lane & 1)) return false;
    const auto at = reinterpret_cast<Address>(late.reduction.at);
    const auto low = reinterpret_cast<Address>(place<ptx::Space::shared>(w, a.address[late.lane], late.lane));
    return at < low + a.size && low < at + late.reduction.size;
  });
}

void LateReductions::settle_of_lanes(const Warp& w) {
  settle_of_lanes(w.block->number, [&](const OfLane& late) { return late.warp == w.number; });
}

void LateReductions::settle_of_lanes(const Block& block) {
  settle_of_lanes(block.number, [](const OfLane&) { return true; });
}

bool comes_late(const Warp& w, const Instruction& i, bool in_block) {
  const LaunchState& launch = w.worker->launch;
  return launch.options.order == Order::reversed && launch.options.threads <= 1 && !launch.launch.early && i.reduces &&
         !i.acquires && !i.releases && launch.late.count() < most_late &&
         (in_block ? launch.program.draws_in_block && !launch.program.of_triton
                   : launch.program.draws && launch.blocks > 1) &&
         (w.block->number % 2 == 1 || (in_block && launch.blocks == 1));
}

void put_late(const Warp& w, std::uint32_t lane, bool in_block, const LateReduction& reduction) {
  LateReductions& late = w.worker->launch.late;
  if (in_block)
    late.add_of_lane(w, lane, reduction);
  else
    late.add(w.block->number, reduction);
}

}  // namespace sim
