"""RMSNorm backward with a part of dweight for each tile of rows, added in pairs until one is left."""

import torch
import triton
import triton.language as tl

TALL = 64  # rows of a part, at least


@triton.jit
def backward(dx, parts, dy, x, weight, rstd, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.arange(0, wide)
    there = column < hidden
    scale = tl.load(weight + column, mask=there, other=0.0).to(tl.float32)
    part = tl.zeros((wide,), tl.float32)
    for index in range(tall):
        row = tl.program_id(0).to(tl.int64) * tall + index
        inside = there & (row < rows)
        root = tl.load(rstd + row, mask=row < rows, other=0.0)
        upstream = tl.load(dy + row * hidden + column, mask=inside, other=0.0).to(tl.float32)
        normal = tl.load(x + row * hidden + column, mask=inside, other=0.0).to(tl.float32) * root
        gradient = upstream * scale
        mean = tl.sum(gradient * normal, axis=0) / hidden
        tl.store(dx + row * hidden + column, root * (gradient - normal * mean), mask=inside)
        part += upstream * normal
    tl.store(parts + tl.program_id(0).to(tl.int64) * hidden + column, part, mask=there)


@triton.jit
def pairs(out, parts, count, hidden, size: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * size + tl.arange(0, size)
    there = column < hidden
    first = tl.load(parts + 2 * row * hidden + column, mask=there, other=0.0)
    second = tl.load(parts + (2 * row + 1) * hidden + column, mask=there & (2 * row + 1 < count), other=0.0)
    tl.store(out + row * hidden + column, first + second, mask=there)


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    rows, hidden = x.shape
    tall = max(TALL, triton.next_power_of_2(triton.cdiv(rows, 1024)))
    wide = triton.next_power_of_2(hidden)
    count = triton.cdiv(rows, tall)
    parts = torch.empty((count, hidden), dtype=torch.float32, device=x.device)
    warps = 1 if wide <= 256 else 8
    backward[(count,)](dx, parts, dy, x, weight, rstd, rows, hidden, tall, wide, num_warps=warps)
    while True:
        half = triton.cdiv(count, 2)
        last = half == 1
        out = dweight if last else torch.empty((half, hidden), dtype=torch.float32, device=x.device)
        pairs[(half, triton.cdiv(hidden, 256))](out, parts, count, hidden, 256)
        if last:
            return
        parts, count = out, half
