"""LayerNorm forward in pieces of the rows: a mean and squares for each lane (Welford, then Chan)."""

import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)


@triton.jit
def joined(count, mean, squares, other_count, other_mean, other_squares):
    whole = count + other_count
    share = tl.where(whole == 0.0, 0.0, other_count / whole)
    difference = other_mean - mean
    return whole, mean + difference * share, squares + other_squares + difference * difference * count * share


@triton.jit
def in_pieces(out, variances, means, inp, scale, bias, hidden, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    count = tl.zeros((wide,), tl.float32)
    mean = tl.zeros((wide,), tl.float32)
    squares = tl.zeros((wide,), tl.float32)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        value = tl.load(inp + row * hidden + column, mask=column < hidden, other=0.0)
        one = (column < hidden).to(tl.float32)
        count += one
        difference = (value - mean) * one
        mean += difference / tl.maximum(count, 1.0)
        squares += difference * (value - mean)
    _whole, of_row, total = tl.reduce((count, mean, squares), 0, joined)
    variance = total / hidden
    tl.store(means + row, of_row)
    tl.store(variances + row, variance)
    root = tl.rsqrt(variance + EPSILON)
    for first in range(0, hidden, wide):
        column = first + tl.arange(0, wide)
        there = column < hidden
        value = tl.load(inp + row * hidden + column, mask=there, other=0.0)
        factor = tl.load(scale + column, mask=there, other=0.0)
        shift = tl.load(bias + column, mask=there, other=0.0)
        tl.store(out + row * hidden + column, (value - of_row) * root * factor + shift, mask=there)


def layernorm_forward(ln_res, vars, means, inp, scale, bias):
    hidden = inp.shape[-1]
    wide = min(1024, triton.next_power_of_2(hidden))
    grid = (inp.numel() // hidden,)
    in_pieces[grid](ln_res, vars, means, inp, scale, bias, hidden, wide, num_warps=4 if wide > 128 else 1)
