"""RMSNorm forward by two kernels: one for the roots of rows, one for all elements in a row."""

import triton
import triton.language as tl


@triton.jit
def roots(rstd, x, rows, hidden, epsilon, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    total = tl.zeros((tall, wide), tl.float32)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        at = row.to(tl.int64)[:, None] * hidden + column[None, :]
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        total += value * value
    tl.store(rstd + row, tl.rsqrt(tl.sum(total, axis=1) / hidden + epsilon), mask=row < rows)


@triton.jit
def scaled(y, rstd, x, weight, elements, hidden, size: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < elements
    root = tl.load(rstd + at // hidden, mask=inside, other=0.0)
    scale = tl.load(weight + at % hidden, mask=inside, other=0.0).to(tl.float32)
    normal = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * root).to(x.dtype.element_ty)
    tl.store(y + at, normal.to(tl.float32) * scale, mask=inside)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, hidden = x.shape
    wide = min(256, triton.next_power_of_2(hidden))
    tall = max(1, 1024 // wide)
    roots[(triton.cdiv(rows, tall),)](rstd, x, rows, hidden, epsilon, tall, wide)
    scaled[(triton.cdiv(rows * hidden, 1024),)](y, rstd, x, weight, rows * hidden, hidden, 1024)
