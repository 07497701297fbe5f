"""RMSNorm and its gradients in Triton, in float32, float16 and bfloat16; arithmetic in float32.

    rstd = 1 / sqrt(mean(x^2) + epsilon),   y = round(x rstd) weight        round: to the type of x
    n = x rstd,   g = dy weight,   dx = rstd (g - n mean(g n)),   dweight = sum over rows of dy n

A program has a tile of whole rows, as many as make it worth while. For dweight it adds up what it meets, and
a second kernel adds up the programs.
"""

import torch
import triton
import triton.language as tl

TILE = 2048  # elements, where a row has no more
PROGRAMS = 256  # that share the rows in backward
COLUMNS = 64  # that a program of the second kernel adds up


@triton.jit
def forward(y, rstd, x, weight, rows, hidden, epsilon, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row.to(tl.int64)[:, None] * hidden + column[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    root = tl.rsqrt(tl.sum(value * value, axis=1) / hidden + epsilon)
    tl.store(rstd + row, root, mask=row < rows)
    normal = (value * root[:, None]).to(x.dtype.element_ty).to(tl.float32)
    scale = tl.load(weight + column, mask=column < hidden, other=0.0).to(tl.float32)
    tl.store(y + at, normal * scale[None, :], mask=inside)


@triton.jit
def backward(dx, parts, dy, x, weight, rstd, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.arange(0, wide)
    scale = tl.load(weight + column, mask=column < hidden, other=0.0).to(tl.float32)
    part = tl.zeros((wide,), tl.float32)
    for first in range(tl.program_id(0) * tall, rows, tl.num_programs(0) * tall):
        row = first + tl.arange(0, tall)
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        at = row.to(tl.int64)[:, None] * hidden + column[None, :]
        root = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
        upstream = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
        normal = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * root
        gradient = upstream * scale[None, :]
        mean = tl.sum(gradient * normal, axis=1) / hidden
        tl.store(dx + at, root * (gradient - normal * mean[:, None]), mask=inside)
        part += tl.sum(upstream * normal, axis=0)
    tl.store(parts + tl.program_id(0) * hidden + column, part, mask=column < hidden)


@triton.jit
def add_up(dweight, parts, programs, hidden, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    total = tl.zeros((wide,), tl.float32)
    for first in range(0, programs, tall):
        part = first + tl.arange(0, tall)
        inside = (part < programs)[:, None] & (column < hidden)[None, :]
        total += tl.sum(
            tl.load(parts + part[:, None] * hidden + column[None, :], mask=inside, other=0.0), axis=0
        )
    tl.store(dweight + column, total, mask=column < hidden)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, hidden = x.shape
    tall, wide, warps = tile(hidden)
    grid = (triton.cdiv(rows, tall),)
    forward[grid](y, rstd, x, weight, rows, hidden, epsilon, tall, wide, num_warps=warps)


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    rows, hidden = x.shape
    tall, wide, warps = tile(hidden)
    programs = min(triton.cdiv(rows, tall), PROGRAMS)
    parts = torch.empty((programs, hidden), dtype=torch.float32, device=x.device)
    backward[(programs,)](dx, parts, dy, x, weight, rstd, rows, hidden, tall, wide, num_warps=warps)
    add_up[(triton.cdiv(hidden, COLUMNS),)](dweight, parts, programs, hidden, 16, COLUMNS)


def tile(hidden):
    """Rows, columns and warps of a program."""
    wide = triton.next_power_of_2(hidden)
    return max(1, TILE // wide), wide, 4 if wide <= 4096 else 8
