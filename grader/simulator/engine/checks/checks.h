// Where the engine tells the checkers what happens.
#pragma once

#include "engine/execution.h"

namespace sim {

// Lanes of one warp have met in a collective or a barrier: what they did before is ordered before what they do next.
void synchronised(Warp&, Mask);
// Warps of a block have met at a barrier.
void synchronised(Block&, Mask warps);
// Lanes that call a collective with a member mask that leaves them out.
void outside_own_mask(Warp&, const Instruction&, Mask lanes, Mask members);

// A fence, as the checker of global memory sees it.
void fence_global(Warp&);

// Lanes that follow each other access what does: all of [low, high).
inline bool in_a_row(const Access& a) { return a.shape == Access::Shape::contiguous && (a.mask & (a.mask + (a.mask & -a.mask))) == 0; }

// Clears what is known of a block's shared memory.
void begin_block(Block&, Worker&);

// The parts of watch().
void check_shared(Warp&, const Instruction&, const Access&);
void check_global(Warp&, const Instruction&, const Access&);
void count_access(Warp&, const Instruction&, const Access&);

}  // namespace sim
