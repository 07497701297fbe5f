// Handlers of the engine itself: what touches more than a warp's registers and memory.
#pragma once

#include "engine/machine.h"

namespace sim {

void fence(Warp&, const Instruction&, Mask);            // membar, fence: the race checker takes note

}  // namespace sim
