"""2-D convolution as products of matrices: one for each column of the filter, which lies along diagonals."""

import triton
import triton.language as tl

STRIP, WIDE = 16, 64


@triton.jit
def products(
    out, image, weights, rows, columns, radius: tl.constexpr, strip: tl.constexpr, wide: tl.constexpr
):
    taps: tl.constexpr = 2 * radius + 1
    column = (tl.program_id(0) * wide + tl.arange(0, wide))[None, :]
    first = tl.program_id(1) * strip
    y = tl.arange(0, 2 * strip)  # a row of the image, `radius` above the strip in the beginning
    row = (first - radius + y)[:, None]
    i = y[None, :] - tl.arange(0, strip)[:, None]
    total = tl.zeros((strip, wide), tl.float32)
    for j in range(taps):
        there = column + j - radius
        inside = (row >= 0) & (row < rows) & (there >= 0) & (there < columns)
        pixels = tl.load(image + row * columns + there, mask=inside, other=0.0)
        diagonals = tl.load(weights + i * taps + j, mask=(i >= 0) & (i < taps), other=0.0)
        total = tl.dot(diagonals, pixels, total, input_precision="ieee")
    written = first + tl.arange(0, strip)[:, None]
    tl.store(out + written * columns + column, total, mask=(written < rows) & (column < columns))


def convolution(out, image, weights, radius):
    rows, columns = image.shape
    grid = (triton.cdiv(columns, WIDE), triton.cdiv(rows, STRIP))
    products[grid](out, image, weights, rows, columns, radius, STRIP, WIDE)
