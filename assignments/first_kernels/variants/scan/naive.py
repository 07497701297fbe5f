"""One program walks over the vector."""

import triton
import triton.language as tl


@triton.jit
def ker(sums, x, n, size: tl.constexpr):
    before = 0.0
    for first in range(0, n, size):
        at = first + tl.arange(0, size)
        value = tl.load(x + at, mask=at < n, other=0.0)
        tl.store(sums + at, before + tl.cumsum(value, axis=0), mask=at < n)
        before += tl.sum(value, axis=0)


def scan(sums, x):
    ker[(1,)](sums, x, x.shape[0], 1024)
