"""Sparse matrix times vector with one lane per row."""

import triton
import triton.language as tl

ROWS = 128


@triton.jit
def lane_per_row(y, values, columns, starts, x, rows, size: tl.constexpr):
    row = tl.program_id(0) * size + tl.arange(0, size)
    k = tl.load(starts + row, mask=row < rows, other=0)
    end = tl.load(starts + row + 1, mask=row < rows, other=0)
    total = tl.zeros((size,), tl.float32)
    for _ in range(tl.max(end - k, axis=0)):
        column = tl.load(columns + k, mask=k < end, other=0)
        total += tl.load(values + k, mask=k < end, other=0.0) * tl.load(x + column, mask=k < end, other=0.0)
        k += 1
    tl.store(y + row, total, mask=row < rows)


def spmv(y, values, columns, starts, x):
    rows = y.shape[0]
    lane_per_row[(triton.cdiv(rows, ROWS),)](y, values, columns, starts, x, rows, ROWS)
