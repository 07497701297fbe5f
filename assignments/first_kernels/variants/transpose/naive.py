"""An element of the matrix after the other: reads are next to each other, writes are not."""

import triton
import triton.language as tl


@triton.jit
def ker(out, matrix, elements, rows, columns):
    at = tl.program_id(0).to(tl.int64) * 256 + tl.arange(0, 256)
    inside = at < elements
    tl.store(out + at % columns * rows + at // columns, tl.load(matrix + at, mask=inside), mask=inside)


def transpose(out, matrix):
    rows, columns = matrix.shape
    ker[(triton.cdiv(rows * columns, 256),)](out, matrix, rows * columns, rows, columns)
