"""A sum of two vectors and a number.

Idea: memory is the limit, so each element is read and written once. A mask leaves out what lies behind the
end.

Bytes: 12 per element.

Launch: a program of 4 warps per 1024 elements, eight per thread.
"""

import triton
import triton.language as tl

TILE = 1024


@triton.jit
def ker_shifted_sum(out, x, y, shift, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total + shift, mask=inside)


def custom_kernel(data):
    x, y, shift, out = data
    n = x.shape[0]
    ker_shifted_sum[(triton.cdiv(n, TILE),)](out, x, y, shift, n, TILE)
    return out
