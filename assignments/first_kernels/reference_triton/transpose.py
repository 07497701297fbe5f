"""Matrix transpose: rows become columns.

Idea: whoever reads a row writes a column, one number to each of many lines of memory. So a program takes a
square tile: it loads rows of the tile and stores rows of its transpose. Between the two the numbers have to
change threads; Triton takes them through shared memory for that, and sees to its banks.

Bytes: 8 per element.

Launch: a program of 8 warps per tile of 64 x 64, 16 elements per thread; one dimension of the grid, as y
and z end at 65,535 programs. Places are counted in 64 bits, as a row's number times its length may not fit
into 32.
"""

import triton
import triton.language as tl

TILE = 64


@triton.jit
def ker_transpose(out, matrix, rows, columns, size: tl.constexpr):
    across = tl.cdiv(columns, size)
    row = tl.program_id(0) // across * size + tl.arange(0, size)
    column = tl.program_id(0) % across * size + tl.arange(0, size)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    at = row.to(tl.int64)[:, None] * columns + column[None, :]
    tile = tl.load(matrix + at, mask=inside)
    turned = column.to(tl.int64)[:, None] * rows + row[None, :]
    tl.store(out + turned, tl.trans(tile), mask=tl.trans(inside))


def transpose(out, matrix):
    rows, columns = matrix.shape
    tiles = triton.cdiv(rows, TILE) * triton.cdiv(columns, TILE)
    ker_transpose[(tiles,)](out, matrix, rows, columns, TILE, num_warps=8)
