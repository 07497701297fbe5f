"""RMSNorm backward by two kernels that read everything each: one goes along rows, one down columns."""

import triton
import triton.language as tl


@triton.jit
def along_rows(dx, dy, x, weight, rstd, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row.to(tl.int64)[:, None] * hidden + column[None, :]
    root = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
    scale = tl.load(weight + column, mask=column < hidden, other=0.0).to(tl.float32)
    normal = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * root
    gradient = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32) * scale[None, :]
    mean = tl.sum(gradient * normal, axis=1) / hidden
    tl.store(dx + at, root * (gradient - normal * mean[:, None]), mask=inside)


@triton.jit
def down_columns(dweight, dy, x, rstd, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    total = tl.zeros((tall, wide), tl.float32)
    for first in range(0, rows, tall):
        row = first + tl.arange(0, tall)
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        at = row.to(tl.int64)[:, None] * hidden + column[None, :]
        root = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        normal = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * root).to(x.dtype.element_ty)
        total += tl.load(dy + at, mask=inside, other=0.0).to(tl.float32) * normal.to(tl.float32)
    tl.store(dweight + column, tl.sum(total, axis=0), mask=column < hidden)


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    rows, hidden = x.shape
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 2048 // wide)
    warps = 4 if wide <= 4096 else 8
    along_rows[(triton.cdiv(rows, tall),)](dx, dy, x, weight, rstd, rows, hidden, tall, wide, num_warps=warps)
    narrow = min(16, wide)
    down_columns[(triton.cdiv(hidden, narrow),)](dweight, dy, x, rstd, rows, hidden, 1024 // narrow, narrow)
