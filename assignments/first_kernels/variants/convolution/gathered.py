"""2-D convolution of a square that is loaded once: it is shifted by tl.gather, and its middle is written."""

import triton
import triton.language as tl

EDGE = 32


@triton.jit
def square(out, image, weights, rows, columns, radius: tl.constexpr, edge: tl.constexpr):
    taps: tl.constexpr = 2 * radius + 1
    y, x = tl.arange(0, edge)[:, None], tl.arange(0, edge)[None, :]
    row = tl.program_id(1) * (edge - 2 * radius) - radius + y
    column = tl.program_id(0) * (edge - 2 * radius) - radius + x
    inside = (row >= 0) & (row < rows) & (column >= 0) & (column < columns)
    pixel = tl.load(image + row * columns + column, mask=inside, other=0.0)
    total = tl.zeros((edge, edge), tl.float32)
    for j in range(taps):
        beside = tl.broadcast_to((x + j - radius) & (edge - 1), (edge, edge))
        shifted = tl.gather(pixel, beside, 1)
        for i in range(taps):
            below = tl.broadcast_to((y + i - radius) & (edge - 1), (edge, edge))
            total += tl.load(weights + i * taps + j) * tl.gather(shifted, below, 0)
    middle = (y >= radius) & (y < edge - radius) & (x >= radius) & (x < edge - radius)
    tl.store(out + row * columns + column, total, mask=inside & middle)


def convolution(out, image, weights, radius):
    rows, columns = image.shape
    written = EDGE - 2 * radius
    grid = (triton.cdiv(columns, written), triton.cdiv(rows, written))
    square[grid](out, image, weights, rows, columns, radius, EDGE)
