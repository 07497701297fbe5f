#include "engine/findings.h"

#include <utility>

namespace sim {

bool Findings::again(std::string_view kind, std::string_view kernel, std::string_view file, unsigned line,
                     std::uint64_t count, Severity severity) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find({std::string(kind), std::string(kernel), std::string(file), line, severity});
  if (found == index_.end()) return false;
  list_[found->second].count += count;
  return true;
}

void Findings::add(Finding finding) {
  const std::lock_guard lock(mutex_);
  const auto [at, fresh] =
      index_.try_emplace({finding.kind, finding.kernel, finding.file, finding.line, finding.severity}, list_.size());
  if (fresh) {
    list_.push_back(std::move(finding));
  } else {
    list_[at->second].count += finding.count;
  }
}

std::vector<Finding> Findings::take() {
  const std::lock_guard lock(mutex_);
  index_.clear();
  return std::exchange(list_, {});
}

}  // namespace sim
