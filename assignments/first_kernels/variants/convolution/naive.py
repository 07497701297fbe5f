"""2-D convolution by tiles of `out` that load the image once for each weight, shifted."""

import triton
import triton.language as tl

TALL, WIDE = 8, 64


@triton.jit
def tile(out, image, weights, rows, columns, radius: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr):
    row = (tl.program_id(1) * tall + tl.arange(0, tall))[:, None]
    column = (tl.program_id(0) * wide + tl.arange(0, wide))[None, :]
    total = tl.zeros((tall, wide), tl.float32)
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            r, c = row + i - radius, column + j - radius
            inside = (r >= 0) & (r < rows) & (c >= 0) & (c < columns)
            pixel = tl.load(image + r * columns + c, mask=inside, other=0.0)
            total += tl.load(weights + i * (2 * radius + 1) + j) * pixel
    tl.store(out + row * columns + column, total, mask=(row < rows) & (column < columns))


def convolution(out, image, weights, radius):
    rows, columns = image.shape
    grid = (triton.cdiv(columns, WIDE), triton.cdiv(rows, TALL))
    tile[grid](out, image, weights, rows, columns, radius, TALL, WIDE)
