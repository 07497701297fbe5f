"""Histogram: how often each number below ``bins`` occurs.

Idea: all threads of the GPU adding to a few counters in memory wait for each other. Triton gives nobody
shared memory to add to, but tl.histogram counts a tile there and in registers. Each program adds up the
counts of its tiles, and adds what it has to memory once, at the end.

tl.histogram takes time for every place, one after the other. Beyond 1024 of them it is faster to add to
memory at once: so many counters are seldom wanted by two threads at the same time.

Bytes: 4 per value.

Launch: at most 528 programs of 8 warps, four for each multiprocessor of an H100, which walk over the values
in tiles of 4096; with many bins a program of 4 warps per 1024 values.
"""

import triton
import triton.language as tl

TILE, PROGRAMS = 4096, 528
FEW, SMALL_TILE = 1024, 1024


@triton.jit
def ker_histogram(counts, values, n, bins, size: tl.constexpr, wide: tl.constexpr):
    own = tl.zeros((wide,), tl.int32)
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        value = tl.load(values + at, mask=at < n, other=0)
        own += tl.histogram(value, wide, mask=at < n)
    place = tl.arange(0, wide)
    tl.atomic_add(counts + place, own, mask=(place < bins) & (own > 0), sem="relaxed")


@triton.jit
def ker_many_bins(counts, values, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    value = tl.load(values + at, mask=at < n, other=0)
    tl.atomic_add(counts + value, 1, mask=at < n, sem="relaxed")


def histogram(counts, values):
    n, bins = values.shape[0], counts.shape[0]
    counts.zero_()
    if bins > FEW:
        ker_many_bins[(triton.cdiv(n, SMALL_TILE),)](counts, values, n, SMALL_TILE)
        return
    wide = max(32, triton.next_power_of_2(bins))
    programs = min(triton.cdiv(n, TILE), PROGRAMS)
    ker_histogram[(programs,)](counts, values, n, bins, TILE, wide, num_warps=8)
