"""LayerNorm backward whose programs leave their sums in memory, where they are added by pairs."""

import torch
import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)


@triton.jit
def backward(
    inp_grad, parts, out_grad, inp, gamma, variances, means, rows, hidden, tall: tl.constexpr,
    wide: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row.to(tl.int64)[:, None] * hidden + column[None, :]
    factor = tl.load(gamma + column, mask=column < hidden, other=0.0)[None, :]
    mean = tl.load(means + row, mask=row < rows, other=0.0)[:, None]
    root = tl.rsqrt(tl.load(variances + row, mask=row < rows, other=1.0) + EPSILON)[:, None]
    upstream = tl.load(out_grad + at, mask=inside, other=0.0)
    normal = tl.where(inside, tl.load(inp + at, mask=inside, other=0.0) - mean, 0.0) * root
    gradient = upstream * factor
    both = tl.sum(gradient, axis=1)[:, None] + normal * tl.sum(gradient * normal, axis=1)[:, None]
    tl.store(inp_grad + at, root * (gradient - both / hidden), mask=inside)
    place = parts + tl.program_id(0).to(tl.int64) * 2 * hidden + column
    tl.store(place, tl.sum(upstream * normal, axis=0), mask=column < hidden)
    tl.store(place + hidden, tl.sum(upstream, axis=0), mask=column < hidden)


@triton.jit
def halve(parts, half, all_parts, width, size: tl.constexpr):
    part = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * size + tl.arange(0, size)
    other = (column < width) & (part + half < all_parts)
    mine = tl.load(parts + part * width + column, mask=column < width, other=0.0)
    total = mine + tl.load(parts + (part + half) * width + column, mask=other, other=0.0)
    tl.store(parts + part * width + column, total, mask=column < width)


@triton.jit
def result(gamma_grad, betta_grad, parts, hidden, size: tl.constexpr):
    column = tl.program_id(0) * size + tl.arange(0, size)
    there = column < hidden
    tl.store(gamma_grad + column, tl.load(parts + column, mask=there, other=0.0), mask=there)
    tl.store(betta_grad + column, tl.load(parts + hidden + column, mask=there, other=0.0), mask=there)


def layernorm_backward(gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, vars, means):
    rows, hidden = inp.numel() // inp.shape[-1], inp.shape[-1]
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 4096 // wide)
    count = triton.cdiv(rows, tall)
    parts = torch.empty((count, 2, hidden), dtype=torch.float32, device=inp.device)
    backward[(count,)](
        inp_grad, parts, out_grad, inp, gamma, vars, means, rows, hidden, tall, wide, num_warps=8
    )
    while count > 1:
        half = (count + 1) // 2
        halve[(half, triton.cdiv(2 * hidden, 512))](parts, half, count, 2 * hidden, 512)
        count = half
    result[(triton.cdiv(hidden, 512),)](gamma_grad, betta_grad, parts, hidden, 512)
