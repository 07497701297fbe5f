"""Blocks that are interrupted between two things that they tell others, in the reversed order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS, STEPS, ITEMS = 4, 6, 8
SUMS = [sum(range(ITEMS + 1))] * ITEMS
SOURCE = """
// A barrier of the grid. A wrong one lets others go on before it has set the number of arrivals back to 0:
// an arrival at the next barrier is lost.
struct Barrier { unsigned arrived, generation; };
__device__ void meet(Barrier* barrier, bool late) {
  const unsigned now = atomicAdd(&barrier->generation, 0u);
  __threadfence();
  if (atomicAdd(&barrier->arrived, 1u) == gridDim.x - 1) {
    __threadfence();
    if (!late) atomicExch(&barrier->arrived, 0u);
    __threadfence();
    atomicAdd(&barrier->generation, 1u);
    if (late) atomicAnd(&barrier->arrived, 0u);
  } else {
    while (atomicAdd(&barrier->generation, 0u) == now) {}
  }
  __threadfence();
}
// Blocks take items from a queue. A wrong kernel takes "taken" for "done".
__device__ void work(unsigned* queue, int* items, int* out, int count, bool waits) {
  __shared__ int item;
  for (;;) {
    if (threadIdx.x == 0) item = atomicAdd(queue, 1u);
    __syncthreads();
    const int now = item;
    if (now >= 2 * count) return;
    const int i = now % count;
    if (threadIdx.x == 0) {
      if (now < count) {
        items[i] = i + 1;
      } else {
        while (waits && atomicAdd(queue + 1, 0u) < count) {}
        __threadfence();
        for (int n = 0; n < count; ++n) out[i] += atomicAdd(&items[n], 0);
      }
      __threadfence();
      if (now < count) atomicAdd(queue + 1, 1u);
    }
    __syncthreads();
  }
}
extern "C" __global__ void done(unsigned* queue, int* items, int* out, int count) {
  work(queue, items, out, count, true);
}
extern "C" __global__ void taken(unsigned* queue, int* items, int* out, int count) {
  work(queue, items, out, count, false);
}
// Blocks, or the warps of one, add up a share each, and the last one that is counted hands the sum over.
// One that is counted before its share is there may be left out.
__device__ void add_up(unsigned* counted, int* sum, int* out, int share, unsigned all, bool counts_first) {
  unsigned before = 0;
  if (counts_first) before = atomicAdd(counted, 1u);
  __threadfence();
  atomicAdd(sum, share);
  __threadfence();
  if (!counts_first) before = atomicAdd(counted, 1u);
  if (before == all - 1) *out = atomicAdd(sum, 0);
}
extern "C" __global__ void blocks_add_first(unsigned* counted, int* sum, int* out, int) {
  add_up(counted, sum, out, blockIdx.x + 1, gridDim.x, false);
}
extern "C" __global__ void blocks_count_first(unsigned* counted, int* sum, int* out, int) {
  add_up(counted, sum, out, blockIdx.x + 1, gridDim.x, true);
}
__device__ void add_up_warps(int* out, bool counts_first) {
  __shared__ unsigned counted;
  __shared__ int sum;
  if (threadIdx.x == 0) counted = sum = 0;
  __syncthreads();
  const unsigned warps = blockDim.x / 32;
  if (threadIdx.x % 32 == 0) add_up(&counted, &sum, out, threadIdx.x / 32 + 1, warps, counts_first);
}
extern "C" __global__ void warps_add_first(unsigned*, int*, int* out, int) { add_up_warps(out, false); }
extern "C" __global__ void warps_count_first(unsigned*, int*, int* out, int) { add_up_warps(out, true); }
// Blocks keep a pair of equal numbers under a lock. Others look at it without the lock, and take what they
// see where its version is the same before and behind; the last look needs a fence in front of it.
struct Pair { unsigned lock, version; int first, second; };
__device__ void keep(volatile Pair* pair, int number) {
  while (atomicCAS((unsigned*)&pair->lock, 0u, 1u) != 0u) {}
  __threadfence();
  const unsigned version = pair->version;
  pair->version = version + 1;
  __threadfence();
  pair->first = number;
  __threadfence();
  pair->second = number;
  __threadfence();
  pair->version = version + 2;
  __threadfence();
  atomicExch((unsigned*)&pair->lock, 0u);
}
__device__ bool torn(volatile Pair* pair, bool fenced) {
  const unsigned before = pair->version;
  __threadfence();
  const int first = pair->first;
  __threadfence();
  const int second = pair->second;
  if (fenced) __threadfence();
  const unsigned behind = pair->version;
  return before == behind && before % 2 == 0 && first != second;
}
__device__ void look_and_keep(Pair* pair, int* out, int number, bool fenced) {
  if (torn(pair, fenced)) atomicAdd(out, 1);
  keep(pair, number);
}
extern "C" __global__ void look_with_fence(Pair* pair, int*, int* out, int) {
  look_and_keep(pair, out, blockIdx.x + 1, true);
}
extern "C" __global__ void look_without_fence(Pair* pair, int*, int* out, int) {
  look_and_keep(pair, out, blockIdx.x + 1, false);
}
// Two groups of two warps each hand the sum of their warps' numbers on by a barrier for 64 threads.
template <bool Own> __device__ void sum_of_group(int* out) {
  __shared__ int of_warps[4];
  const int warp = threadIdx.x / 32, group = warp / 2;
  if (threadIdx.x % 32 == 0) of_warps[warp] = warp + 1;
  asm volatile("bar.sync %0, 64;" ::"r"(Own ? 1 + group : 1) : "memory");
  if (threadIdx.x % 64 == 0) out[2 * blockIdx.x + group] = of_warps[2 * group] + of_warps[2 * group + 1];
}
extern "C" __global__ void barrier_of_each_group(int*, int*, int* out, int) { sum_of_group<true>(out); }
extern "C" __global__ void barrier_of_all_groups(int*, int*, int* out, int) { sum_of_group<false>(out); }
extern "C" __global__ void right(Barrier* barrier, int steps) {
  for (int step = 0; step < steps; ++step) meet(barrier, false);
}
// Looks that decide nothing, then a barrier: it is wrong where others arrive before a block reads its number.
extern "C" __global__ void read_late(Barrier* barrier, int steps) {
  for (int step = 0; step < steps; ++step) {
    for (int look = 0; look < 40; ++look)
      if (*reinterpret_cast<volatile unsigned*>(&barrier->generation) > 1000) return;
    if (atomicAdd(&barrier->arrived, 1u) == gridDim.x - 1) {
      atomicExch(&barrier->arrived, 0u);
      __threadfence();
      atomicAdd(&barrier->generation, 1u);
    } else {
      const unsigned now = atomicAdd(&barrier->generation, 0u);
      while (atomicAdd(&barrier->generation, 0u) == now) {}
    }
  }
}
extern "C" __global__ void reset_late(Barrier* barrier, int steps) {
  for (int step = 0; step < steps; ++step) meet(barrier, true);
}
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "interrupted.so", *LIBRARY)


def ends(library: Path, kernel: str, options: Options) -> bool:
    with Simulator(options) as simulator:
        simulator.load(library)
        barrier = simulator.allocate(8)
        simulator.write(barrier, bytes(8))
        pointers = [struct.pack("<Q", barrier), struct.pack("<i", STEPS)]
        return bool(simulator.launch(kernel, (BLOCKS, 1, 1), (1, 1, 1), pointers))


@pytest.mark.parametrize("options", EVERY_WAY)
def test_a_right_barrier_of_the_grid_ends_in_every_order(library: Path, options: Options) -> None:
    assert ends(library, "right", options)


@pytest.mark.parametrize("kernel", ["reset_late", "read_late"])
def test_a_wrong_barrier_shows_in_the_reversed_order(library: Path, kernel: str) -> None:
    few = 4_000_000  # instructions
    assert ends(library, kernel, Options(instruction_budget=few))
    assert not ends(library, kernel, Options(order=Order.REVERSED, instruction_budget=few))


def sums_of_items(
    library: Path, kernel: str, options: Options, blocks: int = BLOCKS, threads: int = 32
) -> list[int]:
    """What the blocks of a queue put out: sums of all items."""
    with Simulator(options) as simulator:
        simulator.load(library)
        queue, items, out = (simulator.allocate(4 * ITEMS) for _ in range(3))
        for address in (queue, items, out):
            simulator.write(address, bytes(4 * ITEMS))
        pointers = [struct.pack("<Q", address) for address in (queue, items, out)]
        assert simulator.launch(
            kernel, (blocks, 1, 1), (threads, 1, 1), [*pointers, struct.pack("<i", ITEMS)]
        )
        return list(struct.unpack(f"<{ITEMS}i", simulator.read(out, 4 * ITEMS)))


@pytest.mark.parametrize("options", EVERY_WAY)
def test_a_queue_that_waits_for_what_is_done_is_right_in_every_order(library: Path, options: Options) -> None:
    assert sums_of_items(library, "done", options) == SUMS


@pytest.mark.parametrize("options", EVERY_WAY)
def test_groups_with_barriers_of_their_own_are_right_in_every_order(library: Path, options: Options) -> None:
    sums = sums_of_items(library, "barrier_of_each_group", options, blocks=4, threads=128)
    assert sums[:8] == [3, 7] * 4


@pytest.mark.parametrize(
    ("kernel", "kinds"), [("barrier_of_each_group", set()), ("barrier_of_all_groups", {"race_shared"})]
)
def test_groups_that_share_a_barrier_race_in_the_reversed_order(
    library: Path, kernel: str, kinds: set[str]
) -> None:
    with Simulator(Options(order=Order.REVERSED)) as simulator:
        simulator.load(library)
        out = struct.pack("<Q", simulator.allocate(64))
        assert simulator.launch(kernel, (4, 1, 1), (128, 1, 1), [out, out, out, struct.pack("<i", 0)])
        assert {finding.kind for finding in simulator.take_findings()} == kinds


def test_a_queue_that_takes_taken_for_done_is_wrong_in_the_reversed_order(library: Path) -> None:
    assert sums_of_items(library, "taken", Options(threads=1)) == SUMS
    assert sums_of_items(library, "taken", Options(order=Order.REVERSED, threads=1)) != SUMS


SHAPES = {"blocks": (BLOCKS, 1), "warps": (1, 32 * BLOCKS)}


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("of", SHAPES)
def test_shares_that_are_added_first_are_all_there_in_every_order(
    library: Path, of: str, options: Options
) -> None:
    assert sums_of_items(library, f"{of}_add_first", options, *SHAPES[of])[0] == sum(range(BLOCKS + 1))


@pytest.mark.parametrize("of", SHAPES)
def test_who_counts_himself_first_leaves_shares_out_in_the_reversed_order(library: Path, of: str) -> None:
    in_order, in_reverse = (Options(order=order, threads=1) for order in (Order.PROGRAM, Order.REVERSED))
    assert sums_of_items(library, f"{of}_count_first", in_order, *SHAPES[of])[0] == sum(range(BLOCKS + 1))
    assert sums_of_items(library, f"{of}_count_first", in_reverse, *SHAPES[of])[0] < sum(range(BLOCKS + 1))


@pytest.mark.parametrize("options", EVERY_WAY)
def test_a_pair_that_is_looked_at_with_fences_is_whole(library: Path, options: Options) -> None:
    assert sums_of_items(library, "look_with_fence", options, blocks=64, threads=1)[0] == 0


def test_a_pair_may_be_torn_where_no_fence_is_ahead_of_the_second_look(library: Path) -> None:
    reversed_order = Options(order=Order.REVERSED, threads=1)
    assert sums_of_items(library, "look_without_fence", reversed_order, blocks=64, threads=1)[0] > 0
