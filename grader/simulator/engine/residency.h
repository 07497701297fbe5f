// Which blocks of a launch are resident at a time, and on which multiprocessor each of them runs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "capability.h"
#include "device.h"

namespace sim {

// The n-th of `count` things in the chosen order.
std::uint64_t ordered(std::uint64_t n, std::uint64_t count, const Options&);

class Residency {
 public:
  // Where a block runs: the multiprocessor, and which of the blocks there it is.
  struct Seat {
    std::uint32_t multiprocessor = 0, number = 0;
  };

  // of_each: blocks that a multiprocessor holds; blocks: of the launch.
  void begin(std::uint32_t of_each, std::uint64_t blocks) {
    of_each_ = of_each;
    blocks_ = blocks;
    given_back_.clear();
    of_heap_ = 0;
  }
  std::uint32_t of_each() const { return of_each_; }
  std::uint64_t most() const { return std::uint64_t{of_each_} * limits::multiprocessors; }

  // Whether the n-th block to start finds room. Blocks start in this order, so those before it have found theirs.
  bool admits(std::uint64_t n) const { return n < finished_.load(std::memory_order_acquire) + most(); }
  // Multiprocessors take blocks in turn, in an order that depends on that of the blocks.
  Seat take(const Options&);
  // of_heap: bytes of malloc() that the block had at once and has given back.
  void leave(Seat, std::size_t of_heap);
  // Bytes of malloc() that blocks may have at this moment which have ended here: a GPU may run them beside those that
  // run now, as far as there is room.
  std::size_t of_heap() const { return of_heap_.load(std::memory_order_relaxed); }

  bool full() const { return started_ - finished_ == most() && waiting() != 0; }
  std::uint64_t waiting() const { return blocks_ - started_; }  // for room

 private:
  std::uint32_t of_each_ = 1;
  std::uint64_t blocks_ = 0;
  std::atomic<std::uint64_t> started_{0}, finished_{0};
  std::mutex mutex_;  // of what follows
  std::array<std::uint64_t, limits::multiprocessors> taken_{};  // seats of each, as bits
  std::uint64_t turn_ = 0;
  std::deque<std::size_t> given_back_;  // of the heap, by the last blocks that ended
  std::atomic<std::size_t> of_heap_{0};  // their sum
};

}  // namespace sim
