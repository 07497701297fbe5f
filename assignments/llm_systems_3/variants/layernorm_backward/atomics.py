"""LayerNorm backward whose programs add what they have of the sums over rows by atomic operations."""

import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)


@triton.jit
def zero(gamma_grad, betta_grad, hidden, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(gamma_grad + at, tl.zeros((size,), tl.float32), mask=at < hidden)
    tl.store(betta_grad + at, tl.zeros((size,), tl.float32), mask=at < hidden)


@triton.jit
def backward(
    gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, variances, means, rows, hidden,
    tall: tl.constexpr, wide: tl.constexpr,
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
    of_all = tl.sum(gradient, axis=1)[:, None] / hidden
    along = tl.sum(gradient * normal, axis=1)[:, None] / hidden
    tl.store(inp_grad + at, root * (gradient - of_all - normal * along), mask=inside)
    tl.atomic_add(gamma_grad + column, tl.sum(upstream * normal, axis=0), mask=column < hidden)
    tl.atomic_add(betta_grad + column, tl.sum(upstream, axis=0), mask=column < hidden)


def layernorm_backward(gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, vars, means):
    rows, hidden = inp.numel() // inp.shape[-1], inp.shape[-1]
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 4096 // wide)
    zero[(triton.cdiv(hidden, 256),)](gamma_grad, betta_grad, hidden, 256)
    backward[(triton.cdiv(rows, tall),)](
        gamma_grad,
        betta_grad,
        inp_grad,
        out_grad,
        inp,
        gamma,
        vars,
        means,
        rows,
        hidden,
        tall,
        wide,
        num_warps=8,
    )
