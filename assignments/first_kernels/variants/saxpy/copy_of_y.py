"""A copy of y first: the sum is not computed in place."""

import triton
import triton.language as tl


@triton.jit
def ker(y, before, x, a, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < n
    tl.store(y + at, tl.fma(tl.load(x + at, mask=inside), a, tl.load(before + at, mask=inside)), mask=inside)


def saxpy(y, x, a):
    n = x.shape[0]
    ker[(triton.cdiv(n, 256),)](y, y.clone(), x, a, n, 256)
