"""RMSNorm forward by programs that read their row twice: once for the sum, once for the result."""

import triton
import triton.language as tl


@triton.jit
def by_pieces(y, rstd, x, weight, hidden, epsilon, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    total = tl.zeros((wide,), tl.float32)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        value = tl.load(x + row * hidden + column, mask=column < hidden, other=0.0).to(tl.float32)
        total += value * value
    root = 1.0 / tl.sqrt(tl.sum(total, axis=0) / hidden + epsilon)
    tl.store(rstd + row, root)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        inside = column < hidden
        value = tl.load(x + row * hidden + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * hidden + column, value * root * scale, mask=inside)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, hidden = x.shape
    wide = min(512, triton.next_power_of_2(hidden))
    by_pieces[(rows,)](y, rstd, x, weight, hidden, epsilon, wide, num_warps=1 if wide < 128 else 4)
