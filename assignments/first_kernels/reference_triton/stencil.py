"""5-point stencil: several steps at a time, without going back to memory.

Idea: a step needs 5 neighbours, so four steps in one launch need a halo of 4 cells around what a program
writes. A program loads a square with its halo once, takes all steps there, and writes the middle. A cell's
neighbours are with other threads: tl.gather fetches them, by way of shared memory. Cells near the square's
edge become wrong, one ring with each step, and are not written.

Bytes: read and write each cell once for AT_ONCE steps, 8 bytes, and the halo: (EDGE / (EDGE - 2 steps))^2 of
the reads.

Launch: a program of 8 warps for a square of 64 x 64, of which it writes the middle.
"""

import torch
import triton
import triton.language as tl

EDGE = 64  # of a program's square
AT_ONCE = 4  # steps of a launch at most


@triton.jit
def ker_stencil(after, before, rate, rows, columns, steps: tl.constexpr, edge: tl.constexpr):
    written: tl.constexpr = edge - 2 * steps
    y, x = tl.arange(0, edge)[:, None], tl.arange(0, edge)[None, :]
    row = tl.program_id(1) * written - steps + y
    column = tl.program_id(0) * written - steps + x
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    cell = tl.load(before + row * columns + column, mask=inside, other=0.0)

    spreads = (row > 0) & (row < rows - 1) & (column > 0) & (column < columns - 1)
    north = tl.broadcast_to(tl.maximum(y - 1, 0), (edge, edge))
    south = tl.broadcast_to(tl.minimum(y + 1, edge - 1), (edge, edge))
    west = tl.broadcast_to(tl.maximum(x - 1, 0), (edge, edge))
    east = tl.broadcast_to(tl.minimum(x + 1, edge - 1), (edge, edge))
    for _ in tl.static_range(steps):
        around = tl.gather(cell, north, 0) + tl.gather(cell, south, 0)
        around += tl.gather(cell, west, 1) + tl.gather(cell, east, 1)
        cell = tl.where(spreads, cell + rate * (around - 4.0 * cell), cell)

    middle = (y >= steps) & (y < edge - steps) & (x >= steps) & (x < edge - steps)
    tl.store(after + row * columns + column, cell, mask=inside & middle)


def stencil(after, before, rate, steps):
    rows, columns = before.shape
    scratch = torch.empty_like(after) if steps > AT_ONCE else None
    for launches in range(triton.cdiv(steps, AT_ONCE), 0, -1):
        to = after if launches % 2 == 1 else scratch  # so that the last one writes to `after`
        now = min(AT_ONCE, steps)
        written = EDGE - 2 * now
        grid = (triton.cdiv(columns, written), triton.cdiv(rows, written))
        ker_stencil[grid](to, before, rate, rows, columns, now, EDGE, num_warps=8)
        before, steps = to, steps - now
