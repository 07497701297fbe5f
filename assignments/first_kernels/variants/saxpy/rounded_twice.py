"""The product is rounded before it is added, by programs that walk over the vectors."""

import triton
import triton.language as tl


@triton.jit
def ker(y, x, a, n, size: tl.constexpr):
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        product = a * tl.load(x + at, mask=at < n, other=0.0)
        tl.store(y + at, product + tl.load(y + at, mask=at < n, other=0.0), mask=at < n)


def saxpy(y, x, a):
    n = x.shape[0]
    ker[(128,)](y, x, a, n, 512, enable_fp_fusion=False)
