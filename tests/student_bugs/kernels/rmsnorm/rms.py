import torch
import triton
import triton.language as tl


@triton.jit
def fwd(y, rstd, x, w, eps, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < n
    v = tl.load(x + row * n + c, mask=m, other=0.0).to(tl.float32)
    r = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) / n + eps)
    tl.store(rstd + row, r)
    normed = (v * r).to(x.dtype.element_ty).to(tl.float32)
    wv = tl.load(w + c, mask=m, other=0.0).to(tl.float32)
    tl.store(y + row * n + c, normed * wv, mask=m)


@triton.jit
def bwd_x(dx, dy, x, w, rstd, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    m = c < n
    v = tl.load(x + row * n + c, mask=m, other=0.0).to(tl.float32)
    g = tl.load(dy + row * n + c, mask=m, other=0.0).to(tl.float32) * tl.load(w + c, mask=m, other=0.0).to(tl.float32)
    r = tl.load(rstd + row)
    nrm = v * r
    tl.store(dx + row * n + c, r * (g - nrm * (tl.sum(g * nrm, axis=0) / n)), mask=m)


@triton.jit
def bwd_w(part, dy, x, rstd, rows, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = c < n
    acc = tl.zeros((BLOCK,), tl.float32)
    start = tl.program_id(1) * ROWS
    for row in range(start, min(start + ROWS, rows)):
        r = tl.load(rstd + row)
        v = (tl.load(x + row * n + c, mask=m, other=0.0).to(tl.float32) * r).to(x.dtype.element_ty).to(tl.float32)
        acc += tl.load(dy + row * n + c, mask=m, other=0.0).to(tl.float32) * v
    tl.atomic_add(part + c, acc, mask=m)


@triton.jit
def cast(out, part, n, BLOCK: tl.constexpr):
    c = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + c, tl.load(part + c, mask=c < n), mask=c < n)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    rows, n = x.shape
    fwd[(rows,)](y, rstd, x, weight, epsilon, n, triton.next_power_of_2(n))


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    rows, n = x.shape
    bwd_x[(rows,)](dx, dy, x, weight, rstd, n, triton.next_power_of_2(n))
    part = torch.zeros(n, device=x.device, dtype=torch.float32)
    bwd_w[(triton.cdiv(n, 128), triton.cdiv(rows, 32))](part, dy, x, rstd, rows, n, 32, 128)
    cast[(triton.cdiv(n, 128),)](dweight, part, n, 128)
