"""A product of matrices: a value is a row and a column, and both are vectors with a single 1."""

import triton
import triton.language as tl


@triton.jit
def ker(counts, values, n, bins, size: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr):
    row, column = tl.arange(0, rows), tl.arange(0, columns)
    own = tl.zeros((rows, columns), tl.float32)
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        value = tl.load(values + at, mask=at < n, other=-1)
        # behind the end, -1 is in no column
        down = row[:, None] == (value // columns)[None, :]
        across = (value % columns)[:, None] == column[None, :]
        own = tl.dot(down.to(tl.float16), across.to(tl.float16), own)  # exact up to 2^24 values of a program
    place = row[:, None] * columns + column[None, :]
    tl.atomic_add(counts + place, own.to(tl.int32), mask=place < bins)


def histogram(counts, values):
    n, bins = values.shape[0], counts.shape[0]
    counts.zero_()
    rows = max(16, triton.next_power_of_2(triton.cdiv(bins, 64)))
    ker[(min(triton.cdiv(n, 128), 256),)](counts, values, n, bins, 128, rows, 64)
