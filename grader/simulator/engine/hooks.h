// Handlers of the engine itself: what touches more than a warp's registers and memory.
#pragma once

#include "engine/machine.h"

namespace sim {

void fence(Warp&, const Instruction&, Mask);  // membar, fence: the race checker takes note

// What a warp did before comes before what others do once they acquire from the same place in shared memory.
void released(Warp&, std::uint64_t shared_address);
void acquired(Warp&, std::uint64_t shared_address);

// cp.async: what it fills belongs to the copy until its thread waits for it.
void copied(Warp&, const Instruction&, const Access&);
void commit_copies(Warp&, const Instruction&, Mask);  // cp.async.commit_group
void await_copies(Warp&, const Instruction&, Mask);   // wait_group; wait_all if `offset` is -1
void finish_copies(Warp&, Mask);                      // all of these lanes

}  // namespace sim
