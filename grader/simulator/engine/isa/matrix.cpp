// Matrix instructions.
#include "engine/isa/half_lanes.h"

namespace sim::SIM_TARGET {

void add_matrix(Table&) {}

}  // namespace sim::SIM_TARGET
