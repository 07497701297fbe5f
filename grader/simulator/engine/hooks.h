// Handlers of the engine itself: what touches more than a warp's registers and memory.
#pragma once

#include "engine/machine.h"

namespace sim {

// Whether a reduction, in global memory or in that of the block, takes place later (late.h); and that of a lane.
struct LateReduction;
bool comes_late(const Warp&, const Instruction&, bool in_block);
void put_late(const Warp&, std::uint32_t lane, bool in_block, const LateReduction&);

void fence(Warp&, const Instruction&, Mask);  // membar, fence: the race checker takes note

// Lanes that arrive at mbarriers, each at that of its address; the phase of one is complete; lanes have seen that.
void arrived(Warp&, Mask, const std::uint64_t* addresses);
void completed(Warp&, std::uint64_t address);
void waited(Warp&, Mask, const std::uint64_t* addresses);

// cp.async: what it fills belongs to the copy until its thread waits for it.
void copied(Warp&, const Instruction&, const Access&);
void commit_copies(Warp&, const Instruction&, Mask);  // cp.async.commit_group
void await_copies(Warp&, const Instruction&, Mask);   // wait_group; wait_all if `offset` is -1
void finish_copies(Warp&, Mask);                      // all of these lanes

}  // namespace sim
