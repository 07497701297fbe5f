"""Sparse matrix times vector by tiles of entries: each looks for its row by halving, and is added to y."""

import triton
import triton.language as tl

SIZE = 256


@triton.jit
def entries_of_any_rows(y, values, columns, starts, x, rows, entries, size: tl.constexpr):
    k = tl.program_id(0) * size + tl.arange(0, size)
    there = k < entries
    low, high = tl.zeros((size,), tl.int32), tl.full((size,), 0, tl.int32) + rows
    while tl.max(high - low, axis=0) > 1:  # the row is the last one that begins at k or before
        middle = (low + high) // 2
        begins = tl.load(starts + middle) <= k
        low, high = tl.where(begins, middle, low), tl.where(begins, high, middle)
    column = tl.load(columns + k, mask=there, other=0)
    product = tl.load(values + k, mask=there, other=0.0) * tl.load(x + column, mask=there, other=0.0)
    tl.atomic_add(y + low, product, mask=there, sem="relaxed")


def spmv(y, values, columns, starts, x):
    rows, entries = y.shape[0], values.shape[0]
    y.zero_()
    grid = (triton.cdiv(entries, SIZE),)
    entries_of_any_rows[grid](y, values, columns, starts, x, rows, entries, SIZE)
