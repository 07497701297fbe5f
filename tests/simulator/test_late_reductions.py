"""Atomics without a result that others see late, unless a fence stands behind them, in the reversed order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS = 6
SOURCE = """
// Each block adds to a sum and is counted; the last one takes the sum.
__device__ void hand_over(int* words, int* out) {
  if (atomicAdd(&words[1], 1) == gridDim.x - 1) *out = atomicExch(&words[0], 0);
}
extern "C" __global__ void without_fence(int* words, int* out) {
  atomicAdd(&words[0], blockIdx.x + 1);
  hand_over(words, out);
}
extern "C" __global__ void fence_of_block(int* words, int* out) {
  atomicAdd(&words[0], blockIdx.x + 1);
  __threadfence_block();
  hand_over(words, out);
}
extern "C" __global__ void maximum(int* words, int* out) {
  atomicMax(&words[0], blockIdx.x * 5 % gridDim.x + 1);
  hand_over(words, out);
}
extern "C" __global__ void exchange(int* words, int* out) {
  atomicExch(&words[blockIdx.x + 2], blockIdx.x + 1);
  if (atomicAdd(&words[1], 1) == gridDim.x - 1)
    for (int block = 0; block < gridDim.x; ++block) atomicAdd(out, atomicExch(&words[block + 2], 0));
}
extern "C" __global__ void exchange_with_fence(int* words, int* out) {
  atomicExch(&words[blockIdx.x + 2], blockIdx.x + 1);
  __threadfence();
  if (atomicAdd(&words[1], 1) == gridDim.x - 1)
    for (int block = 0; block < gridDim.x; ++block) atomicAdd(out, atomicExch(&words[block + 2], 0));
}
// A lock that is released without a fence in front of it, around atomics alone.
extern "C" __global__ void lock_of_atomics(int* words, int* out) {
  while (atomicExch(&words[1], 1) != 0) {}
  atomicAdd(out, blockIdx.x + 1);
  atomicExch(&words[1], 0);
}
extern "C" __global__ void with_fence(int* words, int* out) {
  atomicAdd(&words[0], blockIdx.x + 1);
  __threadfence();
  hand_over(words, out);
}
extern "C" __global__ void fence_of_the_first(int* words, int* out) {
  if (threadIdx.x == 1) atomicAdd(&words[0], blockIdx.x + 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    hand_over(words, out);
  }
}
extern "C" __global__ void looks_itself(int* words, int* out) {
  atomicAdd(&words[blockIdx.x + 2], 1);
  __syncthreads();
  if (threadIdx.x == 0 && words[blockIdx.x + 2] == blockDim.x) atomicAdd(out, blockIdx.x + 1);
  if (threadIdx.x == 0) atomicAdd(&words[1], atomicAdd(&words[0], 1));
}
// Atomics whose results nobody needs before the next one: that one may take place first.
extern "C" __global__ void counted_first(int* words, int* out) {
  const int before = atomicAdd(&words[0], blockIdx.x + 1);
  const unsigned count = atomicAdd(&words[1], 1);
  if (count == gridDim.x - 1) *out = atomicExch(&words[0], 0);
  else if (before < 0) *out = before;
}
// Each puts something into its box and empties the other one's: one of two finds something there.
extern "C" __global__ void boxes(int* words, int* out) {
  const int mine = atomicExch(&words[blockIdx.x], blockIdx.x + 1);
  const int other = atomicExch(&words[blockIdx.x ^ 1], -1);
  if (other > 0) atomicMax(out, 1);
  if (mine > 100) *out = mine;
}
extern "C" __global__ void counted_behind_a_fence(int* words, int* out) {
  const int before = atomicAdd(&words[0], blockIdx.x + 1);
  __threadfence();
  const unsigned count = atomicAdd(&words[1], 1);
  if (count == gridDim.x - 1) *out = atomicExch(&words[0], 0);
  else if (before < 0) *out = before;
}
extern "C" __global__ void counted_by_the_result(int* words, int* out) {
  const int before = atomicAdd(&words[0], blockIdx.x + 1);
  const unsigned count = atomicAdd(&words[1], before < 0 ? 2 : 1);
  if (count == gridDim.x - 1) *out = atomicExch(&words[0], 0);
}
// The second one is behind a guard that is false: the first one takes place all the same.
extern "C" __global__ void guarded(int* words, int* out) {
  int before;
  asm volatile(
      "{ .reg .pred p; .reg .b32 r; setp.eq.s32 p, %1, 99999; atom.global.add.u32 %0, [%2], %1;"
      " @p atom.global.add.u32 r, [%3], 1; }"
      : "=r"(before) : "r"(blockIdx.x + 1), "l"(out), "l"(words) : "memory");
  if (before == 123456) words[7] = before;
}
// Each may pass the one ahead of it, and all take place.
extern "C" __global__ void three_in_a_row(int* words, int* out) {
  const int first = atomicAdd(out, blockIdx.x), second = atomicAdd(&words[1], 1);
  const int third = atomicAdd(&words[2], 1);
  atomicAdd(out, first < 0 || second < 0 || third < 0 ? 100 : 1);
}
extern "C" __global__ void one_place_twice(int* words, int* out) {
  const int first = atomicAdd(&words[0], 1), second = atomicAdd(&words[threadIdx.x], 1);
  atomicAdd(out, first < second ? blockIdx.x + 1 : 100);
}
// All wait until all have come.
extern "C" __global__ void waits(int* words, int* out) {
  atomicAdd(&words[0], 1);
  while (atomicAdd(&words[0], 0) < gridDim.x) {}
  atomicAdd(out, blockIdx.x + 1);
}
// The lanes of a warp add to a sum in shared memory, and the first one takes it.
extern "C" __global__ void lanes_in_step(int*, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, threadIdx.x);
  if (threadIdx.x == 0) atomicMax(out, atomicExch(&sum, 0));
}
extern "C" __global__ void lanes_counted(int*, int* out) {
  __shared__ int sum, arrived;
  if (threadIdx.x == 0) sum = arrived = 0;
  __syncthreads();
  atomicAdd(&sum, threadIdx.x);
  if (atomicAdd(&arrived, 1) == blockDim.x - 1) atomicMax(out, atomicExch(&sum, 0));
}
extern "C" __global__ void lanes_meet(int*, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, threadIdx.x);
  __syncwarp();
  if (threadIdx.x == 0) atomicMax(out, atomicExch(&sum, 0));
}
extern "C" __global__ void lanes_with_fences(int*, int* out) {
  __shared__ int sum, arrived;
  if (threadIdx.x == 0) sum = arrived = 0;
  __syncthreads();
  atomicAdd(&sum, threadIdx.x);
  __threadfence_block();
  if (atomicAdd(&arrived, 1) == blockDim.x - 1) atomicMax(out, atomicExch(&sum, 0));
}
extern "C" __global__ void warps_meet(int*, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 40) atomicMax(out, atomicExch(&sum, 0));
}
extern "C" __global__ void each_lane_its_own(int*, int* out) {
  __shared__ int sums[32];
  sums[threadIdx.x] = 0;
  atomicAdd(&sums[threadIdx.x], threadIdx.x);
  const int own = atomicExch(&sums[threadIdx.x], 0);
  const int all = __reduce_add_sync(~0u, own);
  if (threadIdx.x == 0) atomicMax(out, all);
}
// A maximum, then its place: between the two another warp may find a larger one. The first look is a decoy.
extern "C" __global__ void place_of_maximum(int*, int* out) {
  __shared__ int best, place;
  if (threadIdx.x == 0) best = place = 0;
  __syncthreads();
  const int key = threadIdx.x < 32 ? 1 : 9 - threadIdx.x / 32;
  if (threadIdx.x % 32 == 0 && atomicMax(&best, 1) <= key && atomicMax(&best, key) < key)
    atomicExch(&place, key);
  __syncthreads();
  if (threadIdx.x == 0) atomicMax(out, place);
}
extern "C" __global__ void waits_for_lanes(int*, int* out) {
  __shared__ int sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  if (threadIdx.x > 31) atomicAdd(&sum, 1);
  if (threadIdx.x == 0) {
    while (atomicAdd(&sum, 0) < 32) {}
    atomicMax(out, sum);
  }
}
"""
IN_BLOCKS = {
    "lanes_meet": (32, sum(range(32))),
    "lanes_with_fences": (32, sum(range(32))),
    "warps_meet": (64, sum(range(64))),
    "each_lane_its_own": (32, sum(range(32))),
    "waits_for_lanes": (64, 32),
}
SUM = sum(range(BLOCKS + 1))
RIGHT = {
    "with_fence": 1,
    "exchange_with_fence": 1,
    "lock_of_atomics": 1,
    "fence_of_the_first": 32,
    "looks_itself": 32,
    "waits": 1,
    "counted_behind_a_fence": 1,
    "counted_by_the_result": 1,
    "guarded": 1,
    "three_in_a_row": 1,
    "one_place_twice": 1,
}


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "late_reductions.so", *LIBRARY)


def result(library: Path, kernel: str, options: Options, threads: int = 1, blocks: int = BLOCKS) -> int:
    with Simulator(options) as simulator:
        simulator.load(library)
        words, out = simulator.allocate(4 * (BLOCKS + 2)), simulator.allocate(4)
        simulator.write(words, bytes(4 * (BLOCKS + 2)))
        simulator.write(out, bytes(4))
        pointers = [struct.pack("<Q", address) for address in (words, out)]
        assert simulator.launch(kernel, (blocks, 1, 1), (threads, 1, 1), pointers)
        return int(struct.unpack("<i", simulator.read(out, 4))[0])


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_what_a_fence_or_the_block_itself_orders_is_right(
    library: Path, kernel: str, options: Options
) -> None:
    assert result(library, kernel, options, RIGHT[kernel]) == SUM


@pytest.mark.parametrize(
    ("kernel", "right"),
    [("without_fence", SUM), ("fence_of_block", SUM), ("maximum", BLOCKS), ("exchange", SUM)],
)
def test_what_nothing_orders_is_missing_in_the_reversed_order(library: Path, kernel: str, right: int) -> None:
    assert result(library, kernel, Options(threads=1)) == right
    assert result(library, kernel, Options(order=Order.REVERSED, threads=1)) < right


@pytest.mark.parametrize(("kernel", "blocks", "right"), [("counted_first", BLOCKS, SUM), ("boxes", 2, 1)])
def test_an_atomic_may_pass_another_one_whose_result_it_does_not_need(
    library: Path, kernel: str, blocks: int, right: int
) -> None:
    assert result(library, kernel, Options(threads=1), blocks=blocks) == right
    assert result(library, kernel, Options(order=Order.REVERSED, threads=1), blocks=blocks) < right


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", IN_BLOCKS)
def test_what_orders_the_lanes_of_a_block_is_right(library: Path, kernel: str, options: Options) -> None:
    threads, right = IN_BLOCKS[kernel]
    assert result(library, kernel, options, threads) == right


@pytest.mark.parametrize("kernel", ["lanes_in_step", "lanes_counted"])
def test_lanes_that_nothing_orders_miss_what_others_add_in_shared_memory(library: Path, kernel: str) -> None:
    right = sum(range(32))
    assert result(library, kernel, Options(threads=1), 32) == right
    assert result(library, kernel, Options(order=Order.REVERSED, threads=1), 32, blocks=1) < right


def test_a_warp_lets_others_go_on_behind_an_atomic_that_is_not_its_first(library: Path) -> None:
    assert result(library, "place_of_maximum", Options(threads=1), 256, blocks=1) == 8
    assert result(library, "place_of_maximum", Options(order=Order.REVERSED, threads=1), 256, blocks=1) < 8
