"""RMSNorm forward by programs that read their rows twice: once for the sums, once for the results."""

import triton
import triton.language as tl


@triton.jit
def by_pieces(y, rstd, x, weight, rows, hidden, epsilon, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)
    total = tl.zeros((tall, wide), tl.float32)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        value = tl.load(x + row[:, None] * hidden + column[None, :], mask=inside, other=0.0).to(tl.float32)
        total += value * value
    root = 1.0 / tl.sqrt(tl.sum(total, axis=1) / hidden + epsilon)
    tl.store(rstd + row, root, mask=row < rows)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        at = row[:, None] * hidden + column[None, :]
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        scale = tl.load(weight + column, mask=column < hidden, other=0.0).to(tl.float32)
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + at, value * root[:, None] * scale[None, :], mask=inside)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, hidden = x.shape
    wide = min(512, triton.next_power_of_2(hidden))
    tall = 512 // wide
    by_pieces[(triton.cdiv(rows, tall),)](y, rstd, x, weight, rows, hidden, epsilon, tall, wide)
