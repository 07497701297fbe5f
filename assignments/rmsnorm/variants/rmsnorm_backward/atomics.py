"""RMSNorm backward whose programs add what they have of dweight to one float32 sum by atomic operations."""

import torch
import triton
import triton.language as tl


@triton.jit
def backward(dx, total, dy, x, weight, rstd, rows, hidden, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0) * tall + tl.arange(0, tall)
    column = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (column < hidden)[None, :]
    at = row.to(tl.int64)[:, None] * hidden + column[None, :]
    root = tl.load(rstd + row, mask=row < rows, other=0.0)[:, None]
    scale = tl.load(weight + column, mask=column < hidden, other=0.0).to(tl.float32)
    upstream = tl.load(dy + at, mask=inside, other=0.0).to(tl.float32)
    normal = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * root
    gradient = upstream * scale[None, :]
    mean = tl.sum(gradient * normal, axis=1) / hidden
    tl.store(dx + at, root * (gradient - normal * mean[:, None]), mask=inside)
    tl.atomic_add(total + column, tl.sum(upstream * normal, axis=0), mask=column < hidden)


@triton.jit
def rounded(dweight, total, hidden, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(dweight + at, tl.load(total + at, mask=at < hidden, other=0.0), mask=at < hidden)


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    rows, hidden = x.shape
    wide = triton.next_power_of_2(hidden)
    tall = max(1, 4096 // wide)
    total = torch.zeros((hidden,), dtype=torch.float32, device=x.device)
    backward[(triton.cdiv(rows, tall),)](
        dx, total, dy, x, weight, rstd, rows, hidden, tall, wide, num_warps=8
    )
    rounded[(triton.cdiv(hidden, 256),)](dweight, total, hidden, 256)
