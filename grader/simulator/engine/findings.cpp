#include "engine/findings.h"

#include <utility>

namespace sim {

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

std::vector<Finding> Findings::take() {
  const std::lock_guard lock(mutex_);
  keys_.clear();
  return std::exchange(list_, {});
}

}  // namespace sim
