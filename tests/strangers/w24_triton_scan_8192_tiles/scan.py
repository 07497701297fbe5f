"""Inclusive scan: tiles, a scan of their sums, an addition."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker_tiles(sums, of_tiles, x, n, size: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * size + tl.arange(0, size)
    v = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(sums + at, tl.cumsum(v, 0), mask=at < n)
    tl.store(of_tiles + pid, tl.sum(v))


@triton.jit
def ker_before(before, of_tiles, tiles, most: tl.constexpr):
    t = tl.arange(0, most)
    v = tl.load(of_tiles + t, mask=t < tiles, other=0.0)
    tl.store(before + t + 1, tl.cumsum(v, 0), mask=t < tiles)


@triton.jit
def ker_add(sums, before, n, size: tl.constexpr):
    pid = tl.program_id(0)
    at = pid * size + tl.arange(0, size)
    if pid > 0:
        carry = tl.load(before + pid)
        v = tl.load(sums + at, mask=at < n, other=0.0)
        tl.store(sums + at, v + carry, mask=at < n)


def scan(sums, x):
    n = x.shape[0]
    tiles = triton.cdiv(n, 1024)
    of_tiles = torch.empty(tiles, dtype=torch.float32, device=x.device)
    before = torch.empty(tiles + 1, dtype=torch.float32, device=x.device)
    ker_tiles[(tiles,)](sums, of_tiles, x, n, 1024)
    ker_before[(1,)](before, of_tiles, tiles, 8192)
    ker_add[(tiles,)](sums, before, n, 1024)
