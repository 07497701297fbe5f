"""The sum of a vector.

Idea: every program adds up tiles of the vector, element by element, and at the end the elements of what it
has. That leaves one partial sum, and a second launch of one program adds those up. Programs cannot wait for
each other, but launches do. Nothing is added by atomics, so the result has the same bits every time.

Bytes: 4 per element.

Launch: at most 528 programs of 8 warps, four for each multiprocessor of an H100, which walk over the vector
in tiles of 4096 elements, 16 per thread; then one program.
"""

import torch
import triton
import triton.language as tl

TILE, PROGRAMS = 4096, 528


@triton.jit
def ker_reduce_sum(sums, x, n, size: tl.constexpr):
    total = tl.zeros((size,), tl.float32)
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        total += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(sums + tl.program_id(0), tl.sum(total, axis=0))


def reduce_sum(total, x):
    n = x.shape[0]
    programs = min(triton.cdiv(n, TILE), PROGRAMS)
    if programs == 1:
        ker_reduce_sum[(1,)](total, x, n, TILE, num_warps=8)
        return
    sums = torch.empty((programs,), dtype=torch.float32, device=x.device)
    ker_reduce_sum[(programs,)](sums, x, n, TILE, num_warps=8)
    ker_reduce_sum[(1,)](total, sums, programs, TILE, num_warps=8)
