"""Sums of tiles, their scan by one program, then the tiles: the vector is read twice, and nobody waits."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker_sums(of_tiles, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(of_tiles + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))


@triton.jit
def ker_before(before, of_tiles, count, size: tl.constexpr):
    total = 0.0
    for first in range(0, count, size):
        at = first + tl.arange(0, size)
        value = tl.load(of_tiles + at, mask=at < count, other=0.0)
        tl.store(before + at, total + tl.cumsum(value, axis=0) - value, mask=at < count)
        total += tl.sum(value, axis=0)


@triton.jit
def ker_scan(sums, before, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    upto = tl.cumsum(tl.load(x + at, mask=at < n, other=0.0), axis=0)
    tl.store(sums + at, tl.load(before + tl.program_id(0)) + upto, mask=at < n)


def scan(sums, x):
    n = x.shape[0]
    count = triton.cdiv(n, 2048)
    of_tiles = torch.empty((count,), dtype=torch.float32, device=x.device)
    before = torch.empty((count,), dtype=torch.float32, device=x.device)
    ker_sums[(count,)](of_tiles, x, n, 2048)
    ker_before[(1,)](before, of_tiles, count, 1024)
    ker_scan[(count,)](sums, before, x, n, 2048)
