"""RMSNorm and its gradients in Triton, in float32, float16 and bfloat16; arithmetic in float32.

    rstd = 1 / sqrt(mean(x^2) + epsilon),   y = round(x rstd) weight        round: to the type of x
    n = x rstd,   g = dy weight,   dx = rstd (g - n mean(g n)),   dweight = sum over rows of dy n

A program has a tile of whole rows, as many as make it worth while. For dweight it adds up what it meets, and
a second kernel adds up the programs. Where x and dy fit the L2 cache, reading them twice costs less than a
second kernel: there some programs work on rows for dx, and others on columns for dweight.
"""

import torch
import triton
import triton.language as tl

TILE = 2048  # elements, where a row has no more
PROGRAMS = 132  # that share the rows in backward, one for each multiprocessor
STAGED = 96 << 10  # bytes of rows that are on their way to a program
CACHED = 16 << 20  # bytes of x and dy that fit the L2 cache
MOST_ROWS = 8192  # of those: more would keep the programs of columns busy for too long
HIGH, SLAB = 128, 16  # rows and columns of a tile of a program that adds up columns


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
def load_tile(dy, x, rstd, row, column, rows, hidden):
    """Dy and n of some rows and columns; the rows' rstd, where the elements lie, and which of them exist."""
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row.to(tl.int64)[:, None] * hidden + column[None, :]
    root = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
    upstream = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    normal = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * root
    return upstream, normal, root, at, inside


@triton.jit
def row_gradients(dx, dy, x, rstd, scale, first, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    """Store dx of a tile of rows, and return dy n."""
    row, column = first + tl.arange(0, tall), tl.arange(0, wide)
    upstream, normal, root, at, inside = load_tile(dy, x, rstd, row, column, rows, hidden)
    gradient = upstream * scale.to(tl.float32)[None, :]
    mean = tl.sum(gradient * normal, axis=1) / hidden
    tl.store(dx + at, root * (gradient - normal * mean[:, None]), mask=inside)
    return upstream * normal


@triton.jit
def backward(
    dx, parts, dy, x, weight, rstd, rows, hidden, tall: tl.constexpr, wide: tl.constexpr, stages: tl.constexpr
):
    column = tl.arange(0, wide)
    scale = tl.load(weight + column, mask=column < hidden, other=0.0)
    part = tl.zeros((tall, wide), tl.float32)
    step = tl.num_programs(0) * tall
    for first in tl.range(tl.program_id(0) * tall, rows, step, num_stages=stages):
        part += row_gradients(dx, dy, x, rstd, scale, first, rows, hidden, tall, wide)
    tl.store(parts + tl.program_id(0) * hidden + column, tl.sum(part, axis=0), mask=column < hidden)


@triton.jit
def add_up(dweight, parts, programs, hidden, high: tl.constexpr, slab: tl.constexpr):
    part = tl.arange(0, high)
    column = tl.program_id(0) * slab + tl.arange(0, slab)
    inside = (part < programs)[:, None] & (column < hidden)[None, :]
    at = part[:, None] * hidden + column[None, :]
    total = tl.sum(tl.load(parts + at, mask=inside, other=0.0), axis=0)
    tl.store(dweight + column, total, mask=column < hidden)


@triton.jit
def backward_cached(
    dx,
    dweight,
    dy,
    x,
    weight,
    rstd,
    rows,
    hidden,
    slabs,
    tall: tl.constexpr,
    wide: tl.constexpr,
    high: tl.constexpr,
    slab: tl.constexpr,
):
    program = tl.program_id(0)
    if program < slabs:  # they take longest, so they come first
        sum_columns(dweight, dy, x, rstd, program * slab, rows, hidden, high, slab)
    else:
        column = tl.arange(0, wide)
        scale = tl.load(weight + column, mask=column < hidden, other=0.0)
        row_gradients(dx, dy, x, rstd, scale, (program - slabs) * tall, rows, hidden, tall, wide)


@triton.jit
def sum_columns(dweight, dy, x, rstd, start, rows, hidden, high: tl.constexpr, slab: tl.constexpr):
    """Store dweight of a slab of columns."""
    column = start + tl.arange(0, slab)
    total = tl.zeros((high, slab), tl.float32)
    for first in range(0, rows, high):
        row = first + tl.arange(0, high)
        upstream, normal, _root, _at, _inside = load_tile(dy, x, rstd, row, column, rows, hidden)
        total += upstream * normal
    tl.store(dweight + column, tl.sum(total, axis=0), mask=column < hidden)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, hidden = x.shape
    tall, wide, warps = tile(hidden)
    grid = (triton.cdiv(rows, tall),)
    forward[grid](y, rstd, x, weight, rows, hidden, epsilon, tall, wide, num_warps=warps)


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    rows, hidden = x.shape
    tall, wide, warps = tile(hidden)
    tiles = triton.cdiv(rows, tall)
    given = (dy, x, weight, rstd, rows, hidden)
    if 2 * x.nbytes <= CACHED and rows <= MOST_ROWS:
        slabs = triton.cdiv(hidden, SLAB)
        backward_cached[(slabs + tiles,)](dx, dweight, *given, slabs, tall, wide, HIGH, SLAB, num_warps=warps)
        return
    programs = min(tiles, PROGRAMS)
    parts = torch.empty((programs, hidden), dtype=torch.float32, device=x.device)
    stages = max(1, min(4, STAGED // (2 * tall * wide * x.element_size())))
    backward[(programs,)](dx, parts, *given, tall, wide, stages, num_warps=8)
    high = triton.next_power_of_2(programs)
    add_up[(triton.cdiv(hidden, SLAB),)](dweight, parts, programs, hidden, high, SLAB, num_warps=warps)


def tile(hidden):
    """Rows, columns and warps of a program."""
    wide = triton.next_power_of_2(hidden)
    return max(1, TILE // wide), wide, 4 if wide <= 4096 else 8
