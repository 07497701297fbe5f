// Vector clocks of threads, as values.
#include "engine/checks/causality.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace sim {

bool Clocks::covers(std::uint32_t thread, std::uint32_t clock) const {
  if (clock < of_warp(thread / lane_count)) return true;
  const auto at = std::ranges::lower_bound(threads_, thread, {}, &Thread::number);
  return at != threads_.end() && at->number == thread && clock < at->clock;
}

bool Clocks::covers_some_lane(std::uint32_t warp, std::uint32_t clock) const {
  return clock < of_warp(warp) ||
         std::ranges::any_of(
             threads_, [&](const Thread& t) { return t.number / lane_count == warp && clock < t.clock; });
}

bool Clocks::contain(const Clocks& other) const {
  for (std::uint32_t w = 0; w < other.warps_.size(); ++w) {
    if (other.warps_[w] > of_warp(w)) return false;
  }
  return std::ranges::all_of(other.threads_, [&](const Thread& t) { return covers(t.number, t.clock - 1); });
}

void Clocks::join_warp(std::uint32_t warp, std::uint32_t clock) {
  if (warp >= warps_.size()) warps_.resize(warp + 1);
  warps_[warp] = std::max(warps_[warp], clock);
  std::erase_if(threads_, [&](const Thread& t) { return t.number / lane_count == warp && t.clock <= warps_[warp]; });
}

void Clocks::join_thread(std::uint32_t thread, std::uint32_t clock) {
  if (clock == 0 || covers(thread, clock - 1)) return;
  const auto at = std::ranges::lower_bound(threads_, thread, {}, &Thread::number);
  if (at != threads_.end() && at->number == thread)
    at->clock = clock;
  else
    threads_.insert(at, {thread, clock});
}

void Clocks::join(const Clocks& other) {
  for (std::uint32_t w = 0; w < other.warps_.size(); ++w) {
    if (other.warps_[w] > of_warp(w)) join_warp(w, other.warps_[w]);
  }
  for (const Thread& t : other.threads_) join_thread(t.number, t.clock);
}

struct Past::Node {
  unsigned height;
  Clocks clocks{};             // of a leaf
  std::vector<Tree> below{};  // of the others
};

const Clocks* Past::of(std::uint64_t block) const {
  const Node* node = root_.get();
  if (!node || block >> (log_fan_out * node->height)) return nullptr;
  while (node && node->height) {
    const unsigned shift = log_fan_out * (node->height - 1);
    node = node->below[block >> shift & ((1u << log_fan_out) - 1)].get();
  }
  return node ? &node->clocks : nullptr;
}

Past::Tree Past::grown(Tree tree, unsigned height) {
  while (tree->height < height) {
    auto above = std::make_shared<Node>(Node{.height = tree->height + 1});
    above->below.resize(std::size_t{1} << log_fan_out);
    above->below[0] = std::move(tree);
    tree = std::move(above);
  }
  return tree;
}

Past::Tree Past::leaf_in(Clocks clocks, std::uint64_t block, unsigned height) {
  Tree tree = std::make_shared<const Node>(Node{.height = 0, .clocks = std::move(clocks)});
  for (unsigned h = 1; h <= height; ++h) {
    auto above = std::make_shared<Node>(Node{.height = h});
    above->below.resize(std::size_t{1} << log_fan_out);
    above->below[block >> (log_fan_out * (h - 1)) & ((1u << log_fan_out) - 1)] = std::move(tree);
    tree = std::move(above);
  }
  return tree;
}

// One of the two itself if it holds all of the other.
Past::Tree Past::joined(const Tree& a, const Tree& b) {
  if (a == b || !b) return a;
  if (!a) return b;
  if (a->height == 0) {
    if (a->clocks.contain(b->clocks)) return a;
    if (b->clocks.contain(a->clocks)) return b;
    auto both = std::make_shared<Node>(*a);
    both->clocks.join(b->clocks);
    return both;
  }
  std::array<Tree, std::size_t{1} << log_fan_out> both;
  bool all_a = true, all_b = true;
  for (std::size_t n = 0; n < both.size(); ++n) {
    both[n] = joined(a->below[n], b->below[n]);
    all_a &= both[n] == a->below[n];
    all_b &= both[n] == b->below[n];
  }
  if (all_a || all_b) return all_a ? a : b;
  auto node = std::make_shared<Node>(Node{.height = a->height});
  node->below.assign(std::make_move_iterator(both.begin()), std::make_move_iterator(both.end()));
  return node;
}

void Past::join(const Past& other) {
  if (!other.root_ || root_ == other.root_) return;
  if (!root_) {
    root_ = other.root_;
    return;
  }
  const unsigned height = std::max(root_->height, other.root_->height);
  root_ = joined(grown(root_, height), grown(other.root_, height));
}

void Past::join(std::uint64_t block, Clocks clocks) {
  unsigned height = root_ ? root_->height : 0;
  while (block >> (log_fan_out * height)) ++height;
  Past other;
  other.root_ = leaf_in(std::move(clocks), block, height);
  join(other);
}

void View::join(const View& other) {
  known.join(other.known);
  for (std::size_t reach = 0; reach < reaches; ++reach) {
    fenced[reach].join(other.fenced[reach]);
    awaited[reach].join(other.awaited[reach]);
  }
  counted.join(other.counted);
}

}  // namespace sim
