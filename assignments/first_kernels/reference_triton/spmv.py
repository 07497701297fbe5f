"""Sparse matrix (CSR) times vector: a tile of rows and lanes, with lanes next to each other in a row.

Idea: with a lane per row, neighbours read far apart, and a whole program for a short row has nothing to do
for most lanes. So a row gets as many lanes as an average row has entries. The program goes along its rows in
steps of so many entries until the longest one ends; what lies behind a row's end is masked, and costs no
bytes. At the end the lanes of each row are added up. A program is one warp with few rows, so that few of them
wait for the longest.

Bytes: 8 per entry, 4 for its place in x, of which the L2 cache has most, and 8 per row. What is read once is
not to push x out of the cache: "evict_first".

Launch: a program of one warp for 128 lanes: 8 rows with 16 lanes each where the average row has 16 entries.
"""

import triton
import triton.language as tl

SIZE = 128  # lanes of a program


@triton.jit
def ker_spmv(y, values, columns, starts, x, rows, tall: tl.constexpr, lanes: tl.constexpr):
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    begin = tl.load(starts + row, mask=row < rows, other=0)
    end = tl.load(starts + row + 1, mask=row < rows, other=0)
    total = tl.zeros((tall, lanes), tl.float32)
    for step in range(0, tl.max(end - begin, axis=0), lanes):
        k = begin[:, None] + step + tl.arange(0, lanes)[None, :]
        there = k < end[:, None]
        value = tl.load(values + k, mask=there, other=0.0, eviction_policy="evict_first")
        column = tl.load(columns + k, mask=there, other=0, eviction_policy="evict_first")
        total += value * tl.load(x + column, mask=there, other=0.0)
    tl.store(y + row, tl.sum(total, axis=1), mask=row < rows)


def spmv(y, values, columns, starts, x):
    rows, entries = y.shape[0], values.shape[0]
    lanes = min(SIZE, triton.next_power_of_2(max(2, entries // rows)))
    tall = SIZE // lanes
    grid = (triton.cdiv(rows, tall),)
    ker_spmv[grid](y, values, columns, starts, x, rows, tall, lanes, num_warps=1)
