"""Inclusive scan by sums along two axes of a tile; three launches."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker_tiles(sums, of_tiles, x, n, side: tl.constexpr):
    p = tl.program_id(0)
    r = tl.arange(0, side)
    i = p * side * side + r[:, None] * side + r[None, :]
    v = tl.load(x + i, mask=i < n, other=0.0)
    along = tl.cumsum(v, 1)
    rows = tl.sum(v, 1)
    before = tl.sum(tl.where(r[None, :] < r[:, None], rows[None, :], 0.0), 1)  # of the rows above
    tl.store(sums + i, along + before[:, None], mask=i < n)
    tl.store(of_tiles + p, tl.sum(rows, 0))


@triton.jit
def ker_before(of_tiles, tiles, size: tl.constexpr):
    carry = 0.0
    for base in range(0, tiles, size):
        i = base + tl.arange(0, size)
        v = tl.load(of_tiles + i, mask=i < tiles, other=0.0)
        s = tl.cumsum(v, 0)
        tl.store(of_tiles + i, s + carry, mask=i < tiles)
        carry += tl.sum(v, 0)


@triton.jit
def ker_add(sums, of_tiles, n, size: tl.constexpr):
    p = tl.program_id(0) + 1
    i = p * size + tl.arange(0, size)
    before = tl.load(of_tiles + p - 1)
    tl.store(sums + i, tl.load(sums + i, mask=i < n, other=0.0) + before, mask=i < n)


def scan(sums, x):
    """Write sums."""
    n = x.shape[0]
    tiles = triton.cdiv(n, 1024)
    of_tiles = torch.empty(tiles, dtype=torch.float32, device=x.device)
    ker_tiles[(tiles,)](sums, of_tiles, x, n, 32)
    ker_before[(1,)](of_tiles, tiles, 256)
    if tiles > 1:
        ker_add[(tiles - 1,)](sums, of_tiles, n, 1024)
