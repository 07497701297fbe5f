"""Matrix multiplication by programs for some columns of a row of C, with sums in place of tl.dot."""

import triton
import triton.language as tl

WIDE, STEP = 32, 32


@triton.jit
def sums(c, a, b, n, k, wide: tl.constexpr, step: tl.constexpr):
    across = tl.cdiv(n, wide)
    row = (tl.program_id(0) // across).to(tl.int64)
    column = tl.program_id(0) % across * wide + tl.arange(0, wide)
    total = tl.zeros((step, wide), tl.float32)
    for begin in range(0, k, step):
        s = begin + tl.arange(0, step)
        inside = (s < k)[:, None] & (column < n)[None, :]
        of_a = tl.load(a + row * k + s, mask=s < k, other=0.0)
        total += of_a[:, None] * tl.load(b + s[:, None] * n + column[None, :], mask=inside, other=0.0)
    tl.store(c + row * n + column, tl.sum(total, axis=0), mask=column < n)


def matmul(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    sums[(m * triton.cdiv(n, WIDE),)](c, a, b, n, k, WIDE, STEP)
