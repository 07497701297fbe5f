"""LayerNorm forward by two kernels: one finds mean and variance of each row, one goes on by elements."""

import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)


@triton.jit
def statistics(variances, means, inp, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    value = tl.load(inp + row[:, None] * hidden + column[None, :], mask=inside, other=0.0)
    mean = tl.sum(value, axis=1) / hidden
    difference = tl.where(inside, value - mean[:, None], 0.0)
    tl.store(means + row, mean, mask=row < rows)
    tl.store(variances + row, tl.sum(difference * difference, axis=1) / hidden, mask=row < rows)


@triton.jit
def results(out, variances, means, inp, scale, bias, elements, hidden, size: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < elements
    row, column = at // hidden, at % hidden
    deviation = tl.sqrt(tl.load(variances + row, mask=inside, other=1.0) + EPSILON)
    normal = (
        tl.load(inp + at, mask=inside, other=0.0) - tl.load(means + row, mask=inside, other=0.0)
    ) / deviation
    factor = tl.load(scale + column, mask=inside, other=0.0)
    tl.store(out + at, normal * factor + tl.load(bias + column, mask=inside, other=0.0), mask=inside)


def layernorm_forward(ln_res, vars, means, inp, scale, bias):
    hidden, elements = inp.shape[-1], inp.numel()
    rows = elements // hidden
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 1024 // wide)
    statistics[(triton.cdiv(rows, tall),)](vars, means, inp, rows, hidden, tall, wide)
    results[(triton.cdiv(elements, 512),)](ln_res, vars, means, inp, scale, bias, elements, hidden, 512)
