"""Inclusive scan: each element becomes the sum of all up to its own place.

Idea: one pass with decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with
Decoupled Look-back", 2016). A program scans its tile in registers, publishes the tile's sum, and looks at
the tiles before it, 32 at a time: it adds up their sums until it meets one that knows its whole prefix.
Then it publishes its own.

Waiting for other programs is safe in Triton under three conditions:
* Whoever is waited for runs already. Triton promises nothing about the order in which programs begin, so a
  tile's number is no program_id but a ticket, taken when the program begins. An atomic operation on a
  single number is done once for the whole program, which then has the same ticket in all its threads.
* What is read belongs together. Sum and state travel in one word of 64 bits, which is written at once, so
  no order of two writes matters and the atomics may be relaxed.
* Every look reads memory again. A load that is volatile is never taken out of the loop, nor out of the L1.

Bytes: 8 per element, which is the least there is.

Launch: a program of 8 warps per 4096 elements, 16 per thread.
"""

import torch
import triton
import triton.language as tl

TILE, WINDOW = 4096, 32
SUM, PREFIX = tl.constexpr(1 << 32), tl.constexpr(2 << 32)  # what a tile has published; 0: nothing


@triton.jit
def publish(tile, value, state: tl.constexpr):
    bits = value.to(tl.uint32, bitcast=True).to(tl.int64)
    tl.atomic_xchg(tile, bits | state, sem="relaxed")


@triton.jit
def look_back(tiles, tile, window: tl.constexpr):
    """The sum of all tiles before ``tile``."""
    total = 0.0
    last = tile - 1
    while last >= 0:
        near = last - tl.arange(0, window)
        seen = tl.load(tiles + near, mask=near >= 0, other=PREFIX, volatile=True)  # before the first tile: 0
        if tl.min(seen, axis=0) >= SUM:
            nearest = tl.max(tl.where(seen >= PREFIX, near, last - window), axis=0)
            value = seen.to(tl.int32).to(tl.float32, bitcast=True)
            total += tl.sum(tl.where(near >= nearest, value, 0.0), axis=0)
            last = tl.where(nearest > last - window, -1, last - window)
    return total


@triton.jit
def ker_scan(sums, tiles, ticket, x, n, size: tl.constexpr, window: tl.constexpr):
    tile = tl.atomic_add(ticket, 1, sem="relaxed")
    at = tile * size + tl.arange(0, size)
    value = tl.load(x + at, mask=at < n, other=0.0)
    upto = tl.cumsum(value, axis=0)
    whole = tl.sum(value, axis=0)
    before = 0.0
    if tile == 0:
        publish(tiles, whole, PREFIX)
    else:
        publish(tiles + tile, whole, SUM)
        before = look_back(tiles, tile, window)
        publish(tiles + tile, before + whole, PREFIX)
    tl.store(sums + at, before + upto, mask=at < n)


def scan(sums, x):
    n = x.shape[0]
    count = triton.cdiv(n, TILE)
    tiles = torch.zeros((count + 1,), dtype=torch.int64, device=x.device)  # and the ticket behind them
    ker_scan[(count,)](sums, tiles, tiles[count:], x, n, TILE, WINDOW, num_warps=8)
