// Which line of the user's source an instruction comes from, through .loc and inlined_at.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/ptx/module.h"

namespace sim::ptx {

class Places {
 public:
  void file(std::uint32_t number, std::string_view path) { files_[number] = path; }
  void enter_function();
  // A .loc directive. parent_* of 0: not inlined. function: the label of its name.
  void loc(std::uint32_t file, std::uint32_t line, std::uint32_t column, std::uint32_t parent_file,
           std::uint32_t parent_line, std::uint32_t parent_column, std::string_view function);
  std::uint32_t current() const { return current_; }
  // For each number that current() gave: the innermost frame that is the user's code. A line of 0 is left as 0.
  std::vector<Place> resolve(const std::unordered_map<std::string_view, std::string>& names) const;

 private:
  struct Frame {
    std::uint32_t file, line, column;
    std::uint32_t parent;  // 0: none
    std::string_view function{};
    bool is_at(std::uint32_t other_file, std::uint32_t other_line, std::uint32_t other_column) const {
      return file == other_file && line == other_line && column == other_column;
    }
  };
  std::uint32_t caller_at(std::uint32_t file, std::uint32_t line, std::uint32_t column);
  std::unordered_map<std::uint32_t, std::string_view> files_;
  std::vector<Frame> frames_{{}};
  std::size_t function_start_ = 1;
  std::uint32_t current_ = 0;
};

}  // namespace sim::ptx
