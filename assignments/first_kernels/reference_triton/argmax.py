"""The place of the largest number of a vector; the first one if there are several.

Idea: for each place of its tile a program keeps the largest number so far and where that was. A later tile
has larger places, so only a larger number takes over. At the end the largest number of the tile is the
maximum, and of all places that hold it the smallest is the answer. Each program leaves such a pair, and a
second launch of one program chooses between them.

Bytes: 4 per element.

Launch: at most 528 programs of 8 warps, four for each multiprocessor of an H100, which walk over the vector
in tiles of 4096 elements, 16 per thread; then one program.
"""

import torch
import triton
import triton.language as tl

TILE, PROGRAMS = 4096, 528


@triton.jit
def ker_best(numbers, places, x, n, size: tl.constexpr):
    begin = tl.program_id(0) * size
    place = begin + tl.arange(0, size)
    best = tl.full((size,), float("-inf"), tl.float32)
    for first in range(begin, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        number = tl.load(x + at, mask=at < n, other=float("-inf"))
        place = tl.where(number > best, at, place)
        best = tl.maximum(best, number)
    most = tl.max(best, axis=0)
    tl.store(numbers + tl.program_id(0), most)
    tl.store(places + tl.program_id(0), tl.min(tl.where(best == most, place, n), axis=0))


@triton.jit
def ker_best_of_programs(place, numbers, places, programs, n, size: tl.constexpr):
    at = tl.arange(0, size)
    number = tl.load(numbers + at, mask=at < programs, other=float("-inf"))
    found = tl.load(places + at, mask=at < programs, other=0)
    most = tl.max(number, axis=0)
    tl.store(place, tl.min(tl.where((number == most) & (at < programs), found, n), axis=0))


def argmax(place, x):
    n = x.shape[0]
    programs = min(triton.cdiv(n, TILE), PROGRAMS)
    numbers = torch.empty((programs,), dtype=torch.float32, device=x.device)
    places = torch.empty((programs,), dtype=torch.int32, device=x.device)
    ker_best[(programs,)](numbers, places, x, n, TILE, num_warps=8)
    size = triton.next_power_of_2(programs)
    ker_best_of_programs[(1,)](place, numbers, places, programs, n, size)
