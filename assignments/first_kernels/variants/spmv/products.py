"""Sparse matrix times vector by two kernels: all products side by side, then the sums of rows."""

import torch
import triton
import triton.language as tl

SIZE, ROWS, LANES = 1024, 32, 4


@triton.jit
def multiply(products, values, columns, x, entries, size: tl.constexpr):
    k = tl.program_id(0) * size + tl.arange(0, size)
    column = tl.load(columns + k, mask=k < entries, other=0)
    product = tl.load(values + k, mask=k < entries, other=0.0) * tl.load(x + column, mask=k < entries)
    tl.store(products + k, product, mask=k < entries)


@triton.jit
def add_up(y, products, starts, rows, tall: tl.constexpr, lanes: tl.constexpr):
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    begin = tl.load(starts + row, mask=row < rows, other=0)
    length = tl.load(starts + row + 1, mask=row < rows, other=0) - begin
    total = tl.zeros((tall,), tl.float32)
    for first in range(0, tl.max(length, axis=0), lanes):
        step = first + tl.arange(0, lanes)[None, :]
        there = step < length[:, None]
        total += tl.sum(tl.load(products + begin[:, None] + step, mask=there, other=0.0), axis=1)
    tl.store(y + row, total, mask=row < rows)


def spmv(y, values, columns, starts, x):
    rows, entries = y.shape[0], values.shape[0]
    products = torch.empty_like(values)
    multiply[(triton.cdiv(entries, SIZE),)](products, values, columns, x, entries, SIZE)
    add_up[(triton.cdiv(rows, ROWS),)](y, products, starts, rows, ROWS, LANES, num_warps=2)
