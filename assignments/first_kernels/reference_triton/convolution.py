"""2-D convolution: a program goes down a strip of the image, with the sums that wait for rows in registers.

Idea: a pixel is needed by (2 radius + 1)^2 outputs. When a row of the image comes, it is loaded once for each
column of the filter, and what it adds to all the rows of `out` that need it is added at once: 7 loads for 49
products with radius 3. After that the uppermost of these sums is complete: it is written, and the others move
up by one. The radius is a constant, so that loops over the filter are unrolled, and the filter stays in
registers, too.

Bytes: 4 read and 4 written per pixel, and the halo above and below each strip, which the L2 cache has mostly.
A row is loaded 2 radius + 1 times, of which the L1 cache has all but the first.

Launch: a program for a strip of 32 rows of 128 columns; a thread has one column.
"""

import triton
import triton.language as tl

STRIP, WIDE = 32, 128


@triton.jit
def ker_convolution(
    out, image, weights, rows, columns, radius: tl.constexpr, strip: tl.constexpr, wide: tl.constexpr
):
    taps: tl.constexpr = 2 * radius + 1
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    begin = tl.program_id(1) * strip
    end = tl.minimum(begin + strip, rows)
    factors = ()
    for i in tl.static_range(taps * taps):
        factors = factors + (tl.load(weights + i),)
    nothing = tl.zeros((wide,), tl.float32)
    sums = (
        nothing,
    ) * taps  # sums[t] belongs to the row of `out` that is radius - t above the row that comes
    for row in range(begin - radius, end + radius):
        pixels = ()
        for j in tl.static_range(taps):
            there = column + (j - radius)
            inside = (row >= 0) & (row < rows) & (there >= 0) & (there < columns)
            pixels = pixels + (tl.load(image + row * columns + there, mask=inside, other=0.0),)
        more = ()
        for t in tl.static_range(taps):
            total = sums[t]
            for j in tl.static_range(taps):
                total += factors[(taps - 1 - t) * taps + j] * pixels[j]
            more = more + (total,)
        done = row - radius
        tl.store(out + done * columns + column, more[0], mask=(done >= begin) & (column < columns))
        sums = more[1:] + (nothing,)


def convolution(out, image, weights, radius):
    rows, columns = image.shape
    grid = (triton.cdiv(columns, WIDE), triton.cdiv(rows, STRIP))
    ker_convolution[grid](out, image, weights, rows, columns, radius, STRIP, WIDE)
