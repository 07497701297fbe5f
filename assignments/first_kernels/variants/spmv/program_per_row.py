"""Sparse matrix times vector with a program of one warp per row."""

import triton
import triton.language as tl


@triton.jit
def one_row(y, values, columns, starts, x, size: tl.constexpr):
    begin, end = tl.load(starts + tl.program_id(0)), tl.load(starts + tl.program_id(0) + 1)
    total = tl.zeros((size,), tl.float32)
    while begin < end:
        k = begin + tl.arange(0, size)
        column = tl.load(columns + k, mask=k < end, other=0)
        total += tl.load(values + k, mask=k < end, other=0.0) * tl.load(x + column)
        begin += size
    tl.store(y + tl.program_id(0), tl.sum(total, axis=0))


def spmv(y, values, columns, starts, x):
    one_row[(y.shape[0],)](y, values, columns, starts, x, 64, num_warps=1)
