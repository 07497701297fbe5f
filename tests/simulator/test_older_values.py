"""Strong reads that bring an older value in the reversed order, where nothing orders the last write."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS = 64
SOURCE = """
#include <cuda/atomic>
using Word = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Order = cuda::memory_order;
constexpr auto relaxed = cuda::memory_order_relaxed, acquire = cuda::memory_order_acquire,
               release = cuda::memory_order_release, both = cuda::memory_order_acq_rel;

// Each block hands its sum to the next one: the value, then a flag.
__device__ void pass_on(int* words, int* out, Order reads, Order writes, bool fences, bool hears = true) {
  int* values = words;
  int* flags = words + gridDim.x;
  const int b = blockIdx.x;
  int sum = b + 1;
  if (b > 0) {
    while (Word(flags[b - 1]).load(reads) == 0) {}
    if (fences && hears) __threadfence();
    sum += Word(values[b - 1]).load(relaxed);
  }
  Word(values[b]).store(sum, relaxed);
  if (fences) __threadfence();
  Word(flags[b]).store(1, writes);
  out[b] = sum;
}
extern "C" __global__ void relaxed_flag(int* words, int* out) {
  pass_on(words, out, relaxed, relaxed, false);
}
extern "C" __global__ void released_flag(int* words, int* out) {
  pass_on(words, out, acquire, release, false);
}
extern "C" __global__ void fenced_flag(int* words, int* out) {
  pass_on(words, out, relaxed, relaxed, true);
}
extern "C" __global__ void fence_of_the_writer_alone(int* words, int* out) {
  pass_on(words, out, relaxed, relaxed, true, false);
}

// A lock around a sum. Inside, the words are read and written by relaxed accesses, so that there is no race.
__device__ void add(int* words, int* out, Order takes, Order leaves) {
  while (Word(words[0]).exchange(1, takes) != 0) {}
  Word(words[1]).store(Word(words[1]).load(relaxed) + 1, relaxed);
  Word(words[0]).store(0, leaves);
  if (Word(words[2]).fetch_add(1, both) == gridDim.x - 1)
    for (int b = 0; b < gridDim.x; ++b) out[b] = Word(words[1]).load(relaxed);
}
extern "C" __global__ void relaxed_lock(int* words, int* out) { add(words, out, relaxed, relaxed); }
extern "C" __global__ void released_lock(int* words, int* out) { add(words, out, acquire, release); }

// Of two blocks each says that it has come, and looks whether the other has. One has to see the other.
__device__ void meet(int* words, int* out, bool fence) {
  const int b = blockIdx.x;
  Word(words[b]).store(1, release);
  if (fence) __threadfence();
  out[b] = 1;
  if (Word(words[b ^ 1]).load(acquire)) out[b] = 2, out[b ^ 1] = 2;
}
// The same, but looks by an atomic that changes nothing.
__device__ void meet_by_atomics(int* words, int* out, bool fence) {
  const int b = blockIdx.x;
  atomicExch(&words[b], 1);
  if (fence) __threadfence();
  out[b] = 1;
  if (atomicAdd(&words[b ^ 1], 0)) out[b] = 2, out[b ^ 1] = 2;
}
extern "C" __global__ void unfenced_atomics(int* words, int* out) { meet_by_atomics(words, out, false); }
// A fence.acq_rel orders no store before a later read of another word.
extern "C" __global__ void half_fenced_meeting(int* words, int* out) {
  const int b = blockIdx.x;
  atomicExch(&words[b], 1);
  cuda::atomic_thread_fence(both, cuda::thread_scope_device);
  out[b] = 1;
  if (Word(words[b ^ 1]).load(relaxed)) out[b] = 2, out[b ^ 1] = 2;
}
extern "C" __global__ void fenced_atomics(int* words, int* out) { meet_by_atomics(words, out, true); }

// The last block adds up what all have left, read by atomics.
__device__ void add_up(int* words, int* out, bool fences, bool hears = true) {
  int* parts = words + 1;
  const int b = blockIdx.x;
  atomicExch(&parts[b], b + 1);
  if (fences) __threadfence();
  if (atomicAdd(&words[0], 1) != gridDim.x - 1) return;
  if (fences && hears) __threadfence();
  for (int sum = 0, n = 0; n < gridDim.x; ++n) out[n] = sum += atomicAdd(&parts[n], 0);
}
extern "C" __global__ void relaxed_parts(int* words, int* out) { add_up(words, out, false); }
extern "C" __global__ void fenced_parts(int* words, int* out) { add_up(words, out, true); }
// As the CUDA C++ Programming Guide has it: the counter is an atomic, and no fence stands behind it.
extern "C" __global__ void parts_of_the_guide(int* words, int* out) { add_up(words, out, true, false); }

// The last block takes what all have left, by atomics that write, too.
__device__ void take(int* words, int* out, bool fences) {
  int* parts = words + 1;
  const int b = blockIdx.x;
  Word(parts[b]).store(b + 1, relaxed);
  if (fences) __threadfence();
  if (atomicAdd(&words[0], 1) != gridDim.x - 1) return;
  if (fences) __threadfence();
  for (int sum = 0, n = 0; n < gridDim.x; ++n) out[n] = sum += atomicExch(&parts[n], 0);
}
extern "C" __global__ void taken_unfenced(int* words, int* out) { take(words, out, false); }
extern "C" __global__ void taken_fenced(int* words, int* out) { take(words, out, true); }

// Numbers go from block to block through a word that the next one empties.
extern "C" __global__ void mailboxes(int* words, int* out) {
  const int b = blockIdx.x;
  int sum = b + 1;
  if (b > 0) {
    int taken;
    while ((taken = atomicExch(&words[b], 0)) == 0) {}
    sum += taken;
  }
  atomicExch(&words[b + 1], sum);
  out[b] = sum;
}

// Looks a few times whether the number is there yet, and then goes on without it.
extern "C" __global__ void impatient(int* words, int* out) {
  int* flags = words + gridDim.x;
  const int b = blockIdx.x;
  int sum = b + 1;
  if (b > 0) {
    while (Word(flags[b - 1]).load(relaxed) == 0) {}
    int value = 0;
    for (int n = 0; n < 64 && value == 0; ++n) value = Word(words[b - 1]).load(relaxed);
    sum += value;
  }
  Word(words[b]).store(sum, relaxed);
  Word(flags[b]).store(1, relaxed);
  out[b] = sum;
}

// The largest number of all blocks, by a compare and swap, which fails where another block has been faster.
__device__ void raise(int* words, int* out, bool again) {
  int old = *words;
  const int own = 7 * (blockIdx.x + 1) % 64;
  while (old < own) {
    const int now = atomicCAS(words, old, own);
    if (now == old || !again) break;
    old = now;
  }
}
extern "C" __global__ void swapped_once(int* words, int* out) { raise(words, out, false); }
extern "C" __global__ void swapped_in_a_loop(int* words, int* out) { raise(words, out, true); }
extern "C" __global__ void maximum_behind_a_look(int* words, int* out) {
  const int own = 7 * (blockIdx.x + 1) % 64;
  if (*words < own) atomicMax(words, own);
}

// Reads the value until it has not changed since the last time.
extern "C" __global__ void read_twice(int* words, int* out) {
  volatile int* values = words;
  volatile int* flags = words + gridDim.x;
  const int b = blockIdx.x;
  int sum = b + 1;
  if (b > 0) {
    while (flags[b - 1] == 0) {}
    int before, value = values[b - 1];
    do {
      before = value;
      value = values[b - 1];
    } while (value != before);
    sum += value;
  }
  values[b] = sum;
  flags[b] = 1;
  out[b] = sum;
}
extern "C" __global__ void unfenced_meeting(int* words, int* out) { meet(words, out, false); }
extern "C" __global__ void fenced_meeting(int* words, int* out) { meet(words, out, true); }

// Who has read a value of a word reads no older one later.
extern "C" __global__ void coherent(int* words, int* out) {
  const int b = blockIdx.x;
  if (b == gridDim.x - 1) {
    for (int n = 1; n <= 100; ++n) Word(words[0]).store(n, relaxed);
  }
  int last = 0;
  out[b] = 1;
  while (last < 100) {
    const int now = Word(words[0]).load(relaxed);
    if (now < last) out[b] = -1;
    last = now;
  }
}
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "older_values.so", "-std=c++17", *LIBRARY)


def ran(library: Path, kernel: str, options: Options, words_read: int = 0) -> list[int]:
    """What the blocks put out, or the first words that they share."""
    size = 8 * BLOCKS
    with Simulator(options) as simulator:
        simulator.load(library)
        words, out = (simulator.allocate(size) for _ in range(2))
        simulator.write(words, bytes(size))
        pointers = [struct.pack("<Q", address) for address in (words, out)]
        assert simulator.launch(kernel, (BLOCKS, 1, 1), (1, 1, 1), pointers)
        result = simulator.read(words, 4 * words_read) if words_read else simulator.read(out, 4 * BLOCKS)
        return np.frombuffer(result, np.int32).tolist()


SUMS = np.arange(1, BLOCKS + 1).cumsum().tolist()
RIGHT = {
    "released_flag": SUMS,
    "fenced_flag": SUMS,
    "released_lock": [BLOCKS] * BLOCKS,
    "fenced_parts": SUMS,
    "taken_fenced": SUMS,
    "mailboxes": SUMS,
    "parts_of_the_guide": SUMS,
    "coherent": [1] * BLOCKS,
}
WRONG = {
    "relaxed_flag": "released_flag",
    "fence_of_the_writer_alone": "fenced_flag",
    "read_twice": "released_flag",
    "relaxed_lock": "released_lock",
    "relaxed_parts": "fenced_parts",
    "taken_unfenced": "taken_fenced",
    "impatient": "released_flag",
}


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", RIGHT)
def test_what_is_ordered_brings_the_newest_value_in_every_order(
    library: Path, kernel: str, options: Options
) -> None:
    assert ran(library, kernel, options) == RIGHT[kernel]


@pytest.mark.parametrize("kernel", WRONG)
def test_what_nothing_orders_may_bring_an_older_value(library: Path, kernel: str) -> None:
    right = RIGHT[WRONG[kernel]]
    assert ran(library, kernel, Options(threads=1)) == right
    assert ran(library, kernel, Options(order=Order.REVERSED, threads=1)) != right


@pytest.mark.parametrize("looks", ["meeting", "atomics"])
def test_a_fence_lets_one_of_two_blocks_see_the_other(library: Path, looks: str) -> None:
    options = Options(order=Order.REVERSED, threads=1)
    assert 1 in ran(library, f"unfenced_{looks}", options)
    assert 1 in ran(library, "half_fenced_meeting", options)
    assert 1 not in ran(library, f"fenced_{looks}", options)


def test_a_compare_and_swap_fails_where_another_block_came_between(library: Path) -> None:
    in_reverse = Options(order=Order.REVERSED, threads=1)
    assert ran(library, "swapped_once", Options(threads=1), 1) == [63]
    assert ran(library, "swapped_once", in_reverse, 1) != [63]
    assert ran(library, "swapped_in_a_loop", in_reverse, 1) == [63]
    assert ran(library, "maximum_behind_a_look", in_reverse, 1) == [63]
