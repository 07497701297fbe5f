"""The largest number first, then the first place that holds it."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker_begin(most, place, n):
    tl.store(most, float("-inf"))
    tl.store(place, n)


@triton.jit
def ker_most(most, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.atomic_max(most, tl.max(tl.load(x + at, mask=at < n, other=float("-inf")), axis=0))


@triton.jit
def ker_first(place, most, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    equal = tl.load(x + at, mask=at < n, other=float("-inf")) == tl.load(most)
    tl.atomic_min(place, tl.min(tl.where(equal & (at < n), at, n), axis=0))


def argmax(place, x):
    n = x.shape[0]
    most = torch.empty((1,), dtype=torch.float32, device=x.device)
    ker_begin[(1,)](most, place, n)
    ker_most[(triton.cdiv(n, 512),)](most, x, n, 512)
    ker_first[(triton.cdiv(n, 512),)](place, most, x, n, 512)
