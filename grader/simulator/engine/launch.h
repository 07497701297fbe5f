// Runs one launch to its end.
#pragma once

#include "engine/execution.h"

namespace sim {

Ran run_launch(LaunchState&, std::vector<LineCount>& counts);

}  // namespace sim
