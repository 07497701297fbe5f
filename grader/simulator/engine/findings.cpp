#include "engine/findings.h"

#include <algorithm>
#include <utility>

namespace sim {
namespace {

bool between_blocks(const Finding& finding) {
  return finding.places.size() == 2 && finding.places[0].block != finding.places[1].block;
}

}  // namespace

bool Findings::has(std::string_view kind, std::string_view kernel, std::string_view file, unsigned line,
                   Severity severity) const {
  const std::lock_guard lock(mutex_);
  return keys_.contains({std::string(kind), std::string(kernel), std::string(file), line, severity});
}

void Findings::add(Finding finding) {
  const std::lock_guard lock(mutex_);
  if (keys_.insert({finding.kind, finding.kernel, finding.file, finding.line, finding.severity}).second)
    list_.push_back(std::move(finding));
}

bool Findings::has_between_blocks(std::string_view kind, std::string_view kernel, std::string_view file,
                                  unsigned line) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(list_, [&](const Finding& f) {
    return f.kind == kind && f.line == line && f.file == file && f.kernel == kernel && between_blocks(f);
  });
}

void Findings::add_between_blocks(Finding finding) {
  {
    const std::lock_guard lock(mutex_);
    const auto within = std::ranges::find_if(list_, [&](const Finding& f) {
      return f.kind == finding.kind && f.line == finding.line && f.file == finding.file && f.kernel == finding.kernel &&
             !between_blocks(f);
    });
    if (within != list_.end()) {
      *within = std::move(finding);
      return;
    }
  }
  add(std::move(finding));
}

std::vector<Finding> Findings::take() {
  const std::lock_guard lock(mutex_);
  keys_.clear();
  return std::exchange(list_, {});
}

}  // namespace sim
