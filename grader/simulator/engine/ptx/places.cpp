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

// The frame of a call that is inlined. Its own .loc comes before: the latest one with that position is meant, and of
// those around it the innermost.
std::uint32_t Places::caller_at(std::uint32_t file, std::uint32_t line, std::uint32_t column) {
  for (auto i = current_; i; i = frames_[i].parent) {
    if (frames_[i].is_at(file, line, column)) return i;
  }
  for (auto i = frames_.size(); i-- > function_start_;) {
    if (frames_[i].is_at(file, line, column)) return static_cast<std::uint32_t>(i);
  }
  frames_.push_back({file, line, column, 0});
  return static_cast<std::uint32_t>(frames_.size() - 1);
}

void Places::loc(std::uint32_t file, std::uint32_t line, std::uint32_t column, std::uint32_t parent_file,
                 std::uint32_t parent_line, std::uint32_t parent_column, std::string_view function) {
  const std::uint32_t parent = parent_file ? caller_at(parent_file, parent_line, parent_column) : 0;
  // Where nvcc has merged code it forgets by whom it is called, but not all of it is merged.
  for (auto i = frames_.size(); !parent && i-- > function_start_;) {
    if (!frames_[i].is_at(file, line, column) || !frames_[i].parent) continue;
    current_ = static_cast<std::uint32_t>(i);
    return;
  }
  for (auto i = frames_.size(); i-- > function_start_ && frames_.size() - i < 64;) {
    if (frames_[i].is_at(file, line, column) && frames_[i].parent == parent) {
      current_ = static_cast<std::uint32_t>(i);
      return;
    }
  }
  frames_.push_back({file, line, column, parent, function});
  current_ = static_cast<std::uint32_t>(frames_.size() - 1);
}

std::vector<Place> Places::resolve(const std::unordered_map<std::string_view, std::string>& names) const {
  std::vector<Place> result;
  result.reserve(frames_.size());
  for (const Frame& inner : frames_) {
    const auto path = [&](const Frame& f) {
      const auto found = files_.find(f.file);
      return found == files_.end() ? std::string_view{} : found->second;
    };
    const Frame* best = &inner;
    while (best->parent && of_toolkit(path(*best))) best = &frames_[best->parent];
    const auto name = names.find(best->function);
    result.push_back({path(*best), best->line, best->column, of_a_merge(path(inner)), best->parent,
                      name == names.end() ? std::string_view{} : name->second});
  }
  return result;
}

}  // namespace sim::ptx
