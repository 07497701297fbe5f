// Which ways a kernel's code goes, and which numbers its comparisons meet: for whoever looks for inputs that take the
// other ways. Nothing of it is a finding.
#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/execution.h"

namespace sim {

using Coverages = std::map<std::string, Coverage, std::less<>>;  // by kernel

// The code of a kernel whose comparisons keep what they meet in Warp::compared. Instructions stay where they are.
std::unique_ptr<KernelCode> observing(const KernelCode&);
void observe(Worker&);  // makes room for what it meets
void collect_coverage(const LaunchState&, const std::vector<std::unique_ptr<Worker>>&, Coverages& into);

}  // namespace sim
