"""LayerNorm and its gradients in Triton; float32.

    ln_res = (inp - mean) / sqrt(var + epsilon) scale + bias
    n = (inp - mean) / sqrt(var),   g = out_grad gamma,   inp_grad = (g - mean(g) - n mean(g n)) / sqrt(var)
    gamma_grad = sum over rows of out_grad n,   betta_grad = sum over rows of out_grad

A program has a tile of whole rows. The variance is that of the differences from the mean. For the sums over
rows it adds up what it meets, and a second kernel adds up the programs.
"""

import torch
import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)
TILE = 2048  # elements, where a row has no more
PROGRAMS = 128  # that share the rows in backward
COLUMNS = 64  # that a program of the second kernel adds up


@triton.jit
def forward(out, variances, means, inp, scale, bias, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row[:, None] * hidden + column[None, :]
    value = tl.load(inp + at, mask=inside, other=0.0)
    mean = tl.sum(value, axis=1) / hidden
    difference = tl.where(inside, value - mean[:, None], 0.0)
    variance = tl.sum(difference * difference, axis=1) / hidden
    tl.store(means + row, mean, mask=row < rows)
    tl.store(variances + row, variance, mask=row < rows)
    factor = tl.load(scale + column, mask=column < hidden, other=0.0)[None, :]
    shift = tl.load(bias + column, mask=column < hidden, other=0.0)[None, :]
    normal = difference * tl.rsqrt(variance + EPSILON)[:, None]
    tl.store(out + at, normal * factor + shift, mask=inside)


@triton.jit
def backward(
    inp_grad, parts, out_grad, inp, gamma, variances, means, rows, hidden, tall: tl.constexpr,
    wide: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, wide)
    factor = tl.load(gamma + column, mask=column < hidden, other=0.0)[None, :]
    of_gamma = tl.zeros((wide,), tl.float32)
    of_betta = tl.zeros((wide,), tl.float32)
    for first in range(tl.program_id(0) * tall, rows, tl.num_programs(0) * tall):
        row = first + tl.arange(0, tall)
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        at = row.to(tl.int64)[:, None] * hidden + column[None, :]
        mean = tl.load(means + row, mask=row < rows, other=0.0)[:, None]
        root = tl.rsqrt(tl.load(variances + row, mask=row < rows, other=1.0) + EPSILON)[:, None]
        upstream = tl.load(out_grad + at, mask=inside, other=0.0)
        normal = tl.where(inside, tl.load(inp + at, mask=inside, other=0.0) - mean, 0.0) * root
        gradient = upstream * factor
        both = tl.sum(gradient, axis=1)[:, None] + normal * tl.sum(gradient * normal, axis=1)[:, None]
        tl.store(inp_grad + at, root * (gradient - both / hidden), mask=inside)
        of_gamma += tl.sum(upstream * normal, axis=0)
        of_betta += tl.sum(upstream, axis=0)
    place = parts + 2 * tl.program_id(0) * hidden + column
    tl.store(place, of_gamma, mask=column < hidden)
    tl.store(place + hidden, of_betta, mask=column < hidden)


@triton.jit
def add_up(gamma_grad, betta_grad, parts, programs, hidden, tall: tl.constexpr, wide: tl.constexpr):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    of_gamma = tl.zeros((wide,), tl.float32)
    of_betta = tl.zeros((wide,), tl.float32)
    for first in range(0, programs, tall):
        part = first + tl.arange(0, tall)
        inside = (part < programs)[:, None] & (column < hidden)[None, :]
        at = 2 * part[:, None] * hidden + column[None, :]
        of_gamma += tl.sum(tl.load(parts + at, mask=inside, other=0.0), axis=0)
        of_betta += tl.sum(tl.load(parts + at + hidden, mask=inside, other=0.0), axis=0)
    tl.store(gamma_grad + column, of_gamma, mask=column < hidden)
    tl.store(betta_grad + column, of_betta, mask=column < hidden)


def layernorm_forward(ln_res, vars, means, inp, scale, bias):
    rows, hidden = inp.numel() // inp.shape[-1], inp.shape[-1]
    tall, wide, warps = tile(hidden)
    grid = (triton.cdiv(rows, tall),)
    forward[grid](ln_res, vars, means, inp, scale, bias, rows, hidden, tall, wide, num_warps=warps)


def layernorm_backward(gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, vars, means):
    rows, hidden = inp.numel() // inp.shape[-1], inp.shape[-1]
    tall, wide, warps = tile(hidden)
    programs = min(triton.cdiv(rows, tall), PROGRAMS)
    parts = torch.empty((programs, 2, hidden), dtype=torch.float32, device=inp.device)
    backward[(programs,)](
        inp_grad, parts, out_grad, inp, gamma, vars, means, rows, hidden, tall, wide, num_warps=warps
    )
    add_up[(triton.cdiv(hidden, COLUMNS),)](gamma_grad, betta_grad, parts, programs, hidden, 16, COLUMNS)


def tile(hidden):
    """Rows, columns and warps of a program."""
    wide = triton.next_power_of_2(hidden)
    return max(1, TILE // wide), wide, 4 if wide <= 4096 else 8
