"""A fixed number of programs walks over the vector."""

import triton
import triton.language as tl


@triton.jit
def ker(z, x, y, n, size: tl.constexpr):
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        a = tl.load(x + at, mask=at < n, other=0.0)
        b = tl.load(y + at, mask=at < n, other=0.0)
        tl.store(z + at, a + b, mask=at < n)


def vector_add(z, x, y):
    n = x.shape[0]
    ker[(min(triton.cdiv(n, 2048), 264),)](z, x, y, n, 2048, num_warps=8)
