"""5-point stencil: several steps at a time, without going back to memory.

Idea: a step needs 5 neighbours, so four steps in one launch need a halo of 4 cells around what a program
writes. A program loads a tile with its halo once, takes all steps there, and writes the middle. A cell's
neighbours are with other threads: tl.gather fetches them, by way of shared memory. Cells near the tile's edge
become wrong, one ring with each step, and are not written. A single step has no use for this: its five loads
of a cell find four in the cache.

Bytes: read and write each cell once for AT_ONCE steps, 8 bytes, and the halo: with four steps, 32 x 128 reads
for 24 x 120 writes.

Launch: a program of 8 warps for a tile of 32 x 128, of which it writes the middle; for a single step, one of
4 warps for 4 x 256 cells.
"""

import torch
import triton
import triton.language as tl

TALL, WIDE = 32, 128  # of a tile with its halo
AT_ONCE = 4  # steps of a launch at most
SINGLE_TALL, SINGLE_WIDE = 4, 256  # of a tile for a single step


@triton.jit
def within_border(row, column, rows, columns):
    return (row > 0) & (row < rows - 1) & (column > 0) & (column < columns - 1)


@triton.jit
def ker_stencil(
    after, before, rate, rows, columns, steps: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    y, x = tl.arange(0, tall)[:, None], tl.arange(0, wide)[None, :]
    row = tl.program_id(1) * (tall - 2 * steps) - steps + y
    column = tl.program_id(0) * (wide - 2 * steps) - steps + x
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    cell = tl.load(before + row * columns + column, mask=inside, other=0.0)

    spreads = within_border(row, column, rows, columns)
    north = tl.broadcast_to(tl.maximum(y - 1, 0), (tall, wide))
    south = tl.broadcast_to(tl.minimum(y + 1, tall - 1), (tall, wide))
    west = tl.broadcast_to(tl.maximum(x - 1, 0), (tall, wide))
    east = tl.broadcast_to(tl.minimum(x + 1, wide - 1), (tall, wide))
    for _ in tl.static_range(steps):
        around = tl.gather(cell, north, 0) + tl.gather(cell, south, 0)
        around += tl.gather(cell, west, 1) + tl.gather(cell, east, 1)
        cell = tl.where(spreads, cell + rate * (around - 4.0 * cell), cell)

    middle = (y >= steps) & (y < tall - steps) & (x >= steps) & (x < wide - steps)
    tl.store(after + row * columns + column, cell, mask=inside & middle)


@triton.jit
def ker_single_step(after, before, rate, rows, columns, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(1) * tall + tl.arange(0, tall)[:, None]
    column = tl.program_id(0) * wide + tl.arange(0, wide)[None, :]
    inside, spreads = (row < rows) & (column < columns), within_border(row, column, rows, columns)
    at = before + row * columns + column
    cell = tl.load(at, mask=inside, other=0.0)
    around = tl.load(at - columns, mask=spreads, other=0.0) + tl.load(at + columns, mask=spreads, other=0.0)
    around += tl.load(at - 1, mask=spreads, other=0.0) + tl.load(at + 1, mask=spreads, other=0.0)
    warmer = tl.where(spreads, cell + rate * (around - 4.0 * cell), cell)
    tl.store(after + row * columns + column, warmer, mask=inside)


def stencil(after, before, rate, steps):
    rows, columns = before.shape
    scratch = torch.empty_like(after) if steps > AT_ONCE else None
    for launches in range(triton.cdiv(steps, AT_ONCE), 0, -1):
        to = after if launches % 2 == 1 else scratch  # so that the last one writes to `after`
        now = min(AT_ONCE, steps)
        if now == 1:
            grid = (triton.cdiv(columns, SINGLE_WIDE), triton.cdiv(rows, SINGLE_TALL))
            ker_single_step[grid](to, before, rate, rows, columns, SINGLE_TALL, SINGLE_WIDE)
        else:
            grid = (triton.cdiv(columns, WIDE - 2 * now), triton.cdiv(rows, TALL - 2 * now))
            ker_stencil[grid](to, before, rate, rows, columns, now, TALL, WIDE, num_warps=8)
        before, steps = to, steps - now
