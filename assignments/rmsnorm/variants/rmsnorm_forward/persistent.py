"""RMSNorm forward by as many programs as run at once: each keeps the weight and goes through its rows."""

import triton
import triton.language as tl

PROGRAMS = 264


@triton.jit
def of_many_rows(y, rstd, x, weight, rows, hidden, epsilon, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.arange(0, wide)
    there = (column < hidden)[None, :]
    scale = tl.load(weight + column, mask=column < hidden, other=0.0)[None, :]
    for first in range(tl.program_id(0) * tall, rows, tl.num_programs(0) * tall):
        row = first + tl.arange(0, tall)
        inside = (row < rows)[:, None] & there
        at = row.to(tl.int64)[:, None] * hidden + column[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        root = tl.rsqrt(tl.sum(value * value, axis=1) * (1.0 / hidden) + epsilon)
        tl.store(rstd + row, root, mask=row < rows)
        normal = (value * root[:, None]).to(scale.dtype)
        tl.store(y + at, normal * scale, mask=inside)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, hidden = x.shape
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 4096 // wide)
    grid = (min(PROGRAMS, triton.cdiv(rows, tall)),)
    of_many_rows[grid](y, rstd, x, weight, rows, hidden, epsilon, tall, wide, num_warps=8)
