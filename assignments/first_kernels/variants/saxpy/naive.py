"""A program of one warp for each 64 elements."""

import triton
import triton.language as tl


@triton.jit
def ker(y, x, a, n):
    at = tl.program_id(0) * 64 + tl.arange(0, 64)
    tl.store(y + at, tl.load(y + at, mask=at < n) + a * tl.load(x + at, mask=at < n), mask=at < n)


def saxpy(y, x, a):
    n = x.shape[0]
    ker[(triton.cdiv(n, 64),)](y, x, a, n, num_warps=1)
