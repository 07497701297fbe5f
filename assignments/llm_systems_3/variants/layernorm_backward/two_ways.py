"""LayerNorm backward by two kernels that read everything each: one goes along rows, one down columns."""

import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)


@triton.jit
def along_rows(
    inp_grad, out_grad, inp, gamma, variances, means, rows, hidden, tall: tl.constexpr, wide: tl.constexpr
):
    row = (tl.program_id(0) * tall + tl.arange(0, tall)).to(tl.int64)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row[:, None] * hidden + column[None, :]
    factor = tl.load(gamma + column, mask=column < hidden, other=0.0)[None, :]
    mean = tl.load(means + row, mask=row < rows, other=0.0)[:, None]
    deviation = tl.sqrt(tl.load(variances + row, mask=row < rows, other=1.0) + EPSILON)[:, None]
    normal = tl.where(inside, tl.load(inp + at, mask=inside, other=0.0) - mean, 0.0) / deviation
    gradient = tl.load(out_grad + at, mask=inside, other=0.0) * factor
    both = tl.sum(gradient, axis=1)[:, None] + normal * tl.sum(gradient * normal, axis=1)[:, None]
    tl.store(inp_grad + at, (gradient - both / hidden) / deviation, mask=inside)


@triton.jit
def down_columns(
    gamma_grad,
    betta_grad,
    out_grad,
    inp,
    variances,
    means,
    rows,
    hidden,
    tall: tl.constexpr,
    wide: tl.constexpr,
):
    column = tl.program_id(0) * wide + tl.arange(0, wide)
    of_gamma = tl.zeros((tall, wide), tl.float32)
    of_betta = tl.zeros((tall, wide), tl.float32)
    for first in range(0, rows, tall):
        row = first + tl.arange(0, tall)
        inside = (row < rows)[:, None] & (column < hidden)[None, :]
        at = row.to(tl.int64)[:, None] * hidden + column[None, :]
        mean = tl.load(means + row, mask=row < rows, other=0.0)[:, None]
        root = tl.rsqrt(tl.load(variances + row, mask=row < rows, other=1.0) + EPSILON)[:, None]
        upstream = tl.load(out_grad + at, mask=inside, other=0.0)
        of_gamma += upstream * (tl.load(inp + at, mask=inside, other=0.0) - mean) * root
        of_betta += upstream
    tl.store(gamma_grad + column, tl.sum(of_gamma, axis=0), mask=column < hidden)
    tl.store(betta_grad + column, tl.sum(of_betta, axis=0), mask=column < hidden)


def layernorm_backward(gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, vars, means):
    rows, hidden = inp.numel() // inp.shape[-1], inp.shape[-1]
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 2048 // wide)
    along_rows[(triton.cdiv(rows, tall),)](
        inp_grad, out_grad, inp, gamma, vars, means, rows, hidden, tall, wide, num_warps=8
    )
    narrow = min(16, wide)
    down_columns[(triton.cdiv(hidden, narrow),)](
        gamma_grad, betta_grad, out_grad, inp, vars, means, rows, hidden, 1024 // narrow, narrow
    )
