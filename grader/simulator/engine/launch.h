// Runs one launch to its end.
#pragma once

#include "engine/checks/coverage.h"
#include "engine/crew.h"
#include "engine/execution.h"

namespace sim {

Ran run_launch(LaunchState&, Crew&, std::vector<LineCount>& counts, Coverages&);

}  // namespace sim
