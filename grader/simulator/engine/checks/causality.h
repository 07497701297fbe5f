// Which accesses come before which: the causality order of the PTX ISA (chapter "Memory Consistency Model", sections
// "Causality Order", "Release and Acquire Patterns", "Morally strong operations" and "Scope"), as vector clocks.
//
// A block's clock moves at what synchronises; an access is a clock and a thread. A thread carries what precedes its
// next operation in causality order ("known"), what its fences and those that precede it have made ready for others
// ("fenced"), and what it has read of such without a fence behind it yet ("awaited"). Barriers hand on all three, as
// causality order is transitive. A strong write leaves at its location what is fenced; a strong read of that location
// takes it as awaited, through any number of atomics between; a fence makes it known. Fences are taken for fence.sc,
// which __threadfence() is, so that those of threads that have met at a barrier count, too ("Fence-SC"): reader and
// writer see the same order of all of them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/machine.h"

namespace sim {

// How far a fence or a strong operation reaches: the scopes .cta and .cluster, where each block is a cluster of its
// own; and .gpu and .sys, as there is one device.
enum Reach : std::uint8_t { within_block, between_blocks };
inline constexpr std::size_t reaches = 2;

// What is known of the threads of one block: of each warp all before a clock, and of some threads more.
class Clocks {
 public:
  bool covers(std::uint32_t thread, std::uint32_t clock) const;
  bool covers_some_lane(std::uint32_t warp, std::uint32_t clock) const;
  bool contain(const Clocks&) const;
  std::uint32_t of_warp(std::uint32_t warp) const { return warp < warps_.size() ? warps_[warp] : 0; }
  void join(const Clocks&);
  void join_warp(std::uint32_t warp, std::uint32_t clock);
  void join_thread(std::uint32_t thread, std::uint32_t clock);

 private:
  struct Thread {
    std::uint32_t number, clock;
  };
  std::vector<std::uint32_t> warps_;
  std::vector<Thread> threads_;  // in the order of their numbers, those that know more than their warp
};

// Clocks of many blocks: a tree that never changes. What is added makes another, which shares the rest with it, so that
// a chain of thousands of blocks stays small.
class Past {
 public:
  explicit operator bool() const { return root_ != nullptr; }
  bool operator==(const Past&) const = default;
  const Clocks* of(std::uint64_t block) const;
  void join(const Past&);
  void join(std::uint64_t block, Clocks);

 private:
  struct Node;
  using Tree = std::shared_ptr<const Node>;
  static constexpr unsigned log_fan_out = 4;
  static Tree grown(Tree, unsigned height);
  static Tree joined(const Tree&, const Tree&);
  static Tree leaf_in(Clocks, std::uint64_t block, unsigned height);
  Tree root_;
};

// What a thread carries.
struct View {
  Past known;  // beside what its warp knows of its block, see SharedRaces::known
  std::array<Past, reaches> fenced, awaited;
  Past counted;  // of what is awaited, what atomics have read that write, too: a counter, see knows()
  bool operator==(const View&) const = default;
  void join(const View&);
};

// What strong writes have left at a location. "Observation order": atomics hand on what they find; other writes do not,
// but a thread's release stays with its own later writes to that location.
struct Location {
  std::uint64_t block = 0;
  std::uint32_t thread = 0, size = 0;
  bool narrow = false;  // the last write reaches the threads of its block alone
  std::array<Past, reaches> fenced, own;  // of all in the chain of atomics, and of the last writer
};

}  // namespace sim
