"""Tiles of two rows of 256 elements, counted from the end."""

import triton
import triton.language as tl


@triton.jit
def ker(z, x, y, n):
    from_end = tl.arange(0, 2)[:, None] * 256 + tl.arange(0, 256)[None, :]
    at = n - 1 - tl.program_id(0) * 512 - from_end
    tl.store(z + at, tl.load(y + at, mask=at >= 0) + tl.load(x + at, mask=at >= 0), mask=at >= 0)


def vector_add(z, x, y):
    n = x.shape[0]
    ker[(triton.cdiv(n, 512),)](z, x, y, n)
