#include "engine/ptx/places.h"

#include <algorithm>
#include <array>

namespace sim::ptx {
namespace {

// Headers of the toolkit, wherever it is installed: a distribution's prefix or a wheel.
bool of_toolkit(std::string_view path) {
  static constexpr std::array<std::string_view, 6> marks{"/targets/", "/cuda/include/", "/nvidia/cu",
                                                         "/cccl/",    "/include/crt/",  "/cuda-"};
  return std::any_of(marks.begin(), marks.end(), [&](auto mark) { return path.find(mark) != path.npos; });
}

// Merges of CUB and thrust load the key behind the last one and make nothing of it.
bool of_a_merge(std::string_view path) {
  return path.ends_with("/cub/block/block_merge_sort.cuh") ||
         path.ends_with("/thrust/system/cuda/detail/set_operations.h");
}

}  // namespace

void Places::enter_function() {
  function_start_ = frames_.size();
  current_ = 0;
}

void Places::loc(std::uint32_t file, std::uint32_t line, std::uint32_t column, std::uint32_t parent_file,
                 std::uint32_t parent_line, std::uint32_t parent_column) {
  std::uint32_t parent = 0;
  if (parent_file) {
    // The caller's own .loc comes before: the latest one with that position is meant.
    for (auto i = frames_.size(); i-- > function_start_ && !parent;) {
      const Frame& f = frames_[i];
      if (f.file == parent_file && f.line == parent_line && f.column == parent_column)
        parent = static_cast<std::uint32_t>(i);
    }
    if (!parent) {
      frames_.push_back({parent_file, parent_line, parent_column, 0});
      parent = static_cast<std::uint32_t>(frames_.size() - 1);
    }
  }
  for (auto i = frames_.size(); i-- > function_start_ && frames_.size() - i < 64;) {
    const Frame& f = frames_[i];
    if (f.file == file && f.line == line && f.column == column && f.parent == parent) {
      current_ = static_cast<std::uint32_t>(i);
      return;
    }
  }
  frames_.push_back({file, line, column, parent});
  current_ = static_cast<std::uint32_t>(frames_.size() - 1);
}

std::vector<Place> Places::resolve() const {
  std::vector<Place> result;
  result.reserve(frames_.size());
  for (const Frame& inner : frames_) {
    const auto path = [&](const Frame& f) {
      const auto found = files_.find(f.file);
      return found == files_.end() ? std::string_view{} : found->second;
    };
    const Frame* best = &inner;
    while (best->parent && of_toolkit(path(*best))) best = &frames_[best->parent];
    result.push_back({path(*best), best->line, of_a_merge(path(inner))});
  }
  return result;
}

}  // namespace sim::ptx
