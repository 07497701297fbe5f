"""2-D convolution of a copy of the image with zeros around it, so that no load of a pixel needs a mask."""

import torch
import triton
import triton.language as tl

EDGE = 32


@triton.jit
def inner(padded, image, rows, columns, pitch, radius, edge: tl.constexpr):
    row = (tl.program_id(1) * edge + tl.arange(0, edge))[:, None]
    column = (tl.program_id(0) * edge + tl.arange(0, edge))[None, :]
    inside = (row < rows) & (column < columns)
    pixel = tl.load(image + row * columns + column, mask=inside)
    tl.store(padded + (row + radius) * pitch + column + radius, pixel, mask=inside)


@triton.jit
def tile(out, padded, weights, rows, columns, pitch, taps, edge: tl.constexpr):
    row = (tl.program_id(1) * edge + tl.arange(0, edge))[:, None]
    column = (tl.program_id(0) * edge + tl.arange(0, edge))[None, :]
    total = tl.zeros((edge, edge), tl.float32)
    for tap in range(taps * taps):
        at = (row + tap // taps) * pitch + column + tap % taps
        total += tl.load(padded + at) * tl.load(weights + tap)
    tl.store(out + row * columns + column, total, mask=(row < rows) & (column < columns))


def convolution(out, image, weights, radius):
    rows, columns = image.shape
    grid = (triton.cdiv(columns, EDGE), triton.cdiv(rows, EDGE))
    down, pitch = (count * EDGE + 2 * radius for count in (grid[1], grid[0]))
    padded = torch.zeros((down, pitch), dtype=torch.float32, device=image.device)
    inner[grid](padded, image, rows, columns, pitch, radius, EDGE)
    tile[grid](out, padded, weights, rows, columns, pitch, 2 * radius + 1, EDGE)
