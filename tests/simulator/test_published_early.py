"""Blocks that publish something: in one of the orders others run shortly before it, or shortly after."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS, FIRST = 200, 1000
SOURCE = """
// y[tile] = first + the sum of x[0] to x[tile]: each tile looks back over those before it. The sum of the
// first one begins with `first`, which it learns late: what it publishes before that is no sum. Wrong ones
// publish that early, take a tile that has published nothing yet for 0, or publish as the sum of all what a
// tile has alone.
enum Fault { NONE, EARLY, HASTY, AS_PREFIX };
__device__ void look_back(int* y, volatile int* published, const int* x, int first, Fault fault) {
  __shared__ int tile;
  if (threadIdx.x == 0) {
    tile = atomicAdd(const_cast<int*>(published), 1);
    const int own = x[tile];
    volatile int* numbers = published + 1;
    if (tile > 0 || fault == EARLY) numbers[tile] = (fault == AS_PREFIX ? 1 << 31 : 1 << 30) | own;
    int before = tile == 0 ? first : 0;
    for (int other = tile - 1; other >= 0;) {
      const int number = numbers[other];
      if (number == 0 && fault != HASTY) continue;
      before += number & 0xffffff;
      if (number < 0) break;
      --other;
    }
    numbers[tile] = 1 << 31 | (before + own);
    y[tile] = before + own;
  }
  __syncthreads();
}
extern "C" __global__ void right(int* y, int* published, const int* x, int first) {
  look_back(y, published, x, first, NONE);
}
extern "C" __global__ void early(int* y, int* published, const int* x, int first) {
  look_back(y, published, x, first, EARLY);
}
extern "C" __global__ void hasty(int* y, int* published, const int* x, int first) {
  look_back(y, published, x, first, HASTY);
}
extern "C" __global__ void as_prefix(int* y, int* published, const int* x, int first) {
  look_back(y, published, x, first, AS_PREFIX);
}
// Each block waits for all others, more than pause at a time.
extern "C" __global__ void meet(int* y, volatile int* published) {
  published[blockIdx.x] = 1;
  for (int other = 0; other < gridDim.x; ++other)
    while (published[other] == 0) {}
  y[blockIdx.x] = 1;
}
"""


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "published.so", *LIBRARY)


def ran(library: Path, kernel: str, options: Options) -> tuple[list[int], list[str]]:
    """What y holds after the kernel, and the kinds of findings."""
    x = np.arange(1, BLOCKS + 1, dtype=np.int32)
    with Simulator(options) as simulator:
        simulator.load(library)
        y, published, values = (simulator.allocate(4 * (BLOCKS + 1)) for _ in range(3))
        simulator.write(published, bytes(4 * (BLOCKS + 1)))
        simulator.write(values, x.tobytes())
        pointers = [struct.pack("<Q", one) for one in (y, published)]
        if kernel != "meet":
            pointers += [struct.pack("<Q", values), struct.pack("<i", FIRST)]
        simulator.launch(kernel, (BLOCKS, 1, 1), (32, 1, 1), pointers)
        kinds = [finding.kind for finding in simulator.take_findings()]
        return np.frombuffer(simulator.read(y, 4 * BLOCKS), np.int32).tolist(), kinds


SUMS = (FIRST + np.arange(1, BLOCKS + 1).cumsum()).tolist()


@pytest.mark.parametrize("options", EVERY_WAY)
def test_a_right_look_back_is_right_and_silent_in_every_order(library: Path, options: Options) -> None:
    assert ran(library, "right", options) == (SUMS, [])


@pytest.mark.parametrize("kernel", ["early", "hasty", "as_prefix"])
def test_what_others_read_too_early_shows_in_the_reversed_order(library: Path, kernel: str) -> None:
    assert ran(library, kernel, Options())[0] == SUMS
    assert ran(library, kernel, Options(order=Order.REVERSED, threads=1))[0] != SUMS


@pytest.mark.parametrize("options", EVERY_WAY)
def test_blocks_that_pause_do_not_keep_others_from_starting(library: Path, options: Options) -> None:
    assert ran(library, "meet", options) == ([1] * BLOCKS, [])
