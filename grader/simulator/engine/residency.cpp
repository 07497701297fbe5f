#include "engine/residency.h"

#include <bit>
#include <numeric>

namespace sim {

static_assert(limits::blocks_per_sm <= 64);

// In the shuffled order a walk through all numbers with a step that has no common factor with their count.
std::uint64_t ordered(std::uint64_t n, std::uint64_t count, const Options& options) {
  if (options.order == Order::program || count < 2) return n;
  if (options.order == Order::reversed) return count - 1 - n;
  std::uint64_t step = (options.seed * 0x9e3779b97f4a7c15u >> 20) % count + 1;
  while (std::gcd(step, count) != 1) ++step;
  return (options.seed * 0xbf58476d1ce4e5b9u % count + static_cast<unsigned __int128>(n) * step) % count;
}

Residency::Seat Residency::take(const Options& options) {
  constexpr std::uint64_t count = limits::multiprocessors;
  const std::lock_guard lock(mutex_);
  ++started_;
  const std::uint64_t all = (std::uint64_t{1} << of_each_) - 1;
  for (;;) {
    // Two multiprocessors share a path to memory, so a GPU gives the first ones of all pairs a block, then the others.
    const std::uint64_t n = 2 * (turn_++ % count);
    const auto at = static_cast<std::uint32_t>(ordered(n < count ? n : n - count + 1, count, options));
    if (taken_[at] == all) continue;
    const auto seat = static_cast<std::uint32_t>(std::countr_one(taken_[at]));
    taken_[at] |= std::uint64_t{1} << seat;
    return {at, seat};
  }
}

void Residency::leave(Seat seat, std::size_t of_heap) {
  const std::lock_guard lock(mutex_);
  taken_[seat.multiprocessor] &= ~(std::uint64_t{1} << seat.number);
  finished_.fetch_add(1, std::memory_order_release);
  given_back_.push_back(of_heap);
  std::size_t sum = of_heap_ + of_heap;
  while (given_back_.size() + (started_ - finished_) >= most()) {  // one more is about to start
    sum -= given_back_.front();
    given_back_.pop_front();
  }
  of_heap_ = sum;
}

}  // namespace sim
