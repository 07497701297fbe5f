"""Blocks that are interrupted between two things that they tell others, in the reversed order."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile

from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

BLOCKS, STEPS = 4, 6
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
extern "C" __global__ void right(Barrier* barrier, int steps) {
  for (int step = 0; step < steps; ++step) meet(barrier, false);
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


def test_an_arrival_that_is_lost_shows_in_the_reversed_order(library: Path) -> None:
    few = 4_000_000  # instructions
    assert ends(library, "reset_late", Options(instruction_budget=few))
    assert not ends(library, "reset_late", Options(order=Order.REVERSED, instruction_budget=few))
