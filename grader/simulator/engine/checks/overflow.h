// Whether 32-bit arithmetic that decides an address has wrapped. Where that is asked for, the decoder puts these hidden
// instructions beside those of a kernel (decode/overflow.cpp). For each register on the way to an address they keep
// its exact value, as 64 bits make it: the same as the register's own, unless a result did not fit into 32 bits.
#pragma once

#include "engine/machine.h"

namespace sim {

// d, a, b, c: exact values. Bit n of Instruction::target: operand n is one of 64 bits, else it is a signed one of 32.
void exact_add(Warp&, const Instruction&, Mask);
void exact_subtract(Warp&, const Instruction&, Mask);
void exact_multiply(Warp&, const Instruction&, Mask);
void exact_multiply_add(Warp&, const Instruction&, Mask);
void exact_shift(Warp&, const Instruction&, Mask);  // b: a count of 32 bits
void exact_widen(Warp&, const Instruction&, Mask);
// d, exact a, a: as an unsigned register of 32 bits is widened.
void exact_widen_unsigned(Warp&, const Instruction&, Mask);
// d, the register, and up to two pairs of an exact value and its register: d is that of the register that has the same
// bits, else these bits. `size`: bytes of the registers; `target`: pairs.
void exact_choice(Warp&, const Instruction&, Mask);
// exact a, a: the address of the access that comes next. Warp::lists, from `target` on: how many, and of each
// arithmetic instruction on the way there its site, its exact result and its result.
void check_overflow(Warp&, const Instruction&, Mask);

}  // namespace sim
