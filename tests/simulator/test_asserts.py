"""A failed assert of the device ends the launch, and is told once and not by every thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call, marked_lines

from grader.simulator.driver import Options, Simulator

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
#include <cassert>
__global__ void check(int n) {
  if (threadIdx.x % 2) assert(threadIdx.x > n);  // odd
  if (threadIdx.x % 2 == 0) assert(threadIdx.x != n);  // even
}
extern "C" int every_thread() {
  check<<<1000, 256>>>(1000);
  return cudaDeviceSynchronize();
}
extern "C" int one_thread_each() {
  check<<<10, 2>>>(0);
  return cudaDeviceSynchronize();
}
extern "C" int two_places() {
  check<<<10, 4>>>(2);
  return cudaDeviceSynchronize();
}
"""
LINES = {word: min(lines) for word, lines in marked_lines(SOURCE).items()}


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize(
    ("function", "conditions"),
    [
        ("every_thread", {"odd": "threadIdx.x > n"}),
        ("one_thread_each", {"even": "threadIdx.x != n"}),
        ("two_places", {"odd": "threadIdx.x > n", "even": "threadIdx.x != n"}),
    ],
)
def test_each_assert_speaks_once(
    function: str, conditions: dict[str, str], options: Options, nvcc: Compile
) -> None:
    library: Path = nvcc(SOURCE, "asserts.so", *LIBRARY)
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 710
        outcome = simulator.synchronize()
        printed = simulator.take_printed().splitlines()
    assert outcome.fault == "cudaErrorAssert"
    said = [f"assertion `{text}` failed at {library}.cu:{LINES[place]}" for place, text in conditions.items()]
    assert any(one in outcome.message for one in said)
    assert len(printed) == len(conditions)
    for place, text in conditions.items():
        (line,) = [line for line in printed if f":{LINES[place]}: " in line]
        assert line.endswith(f"Assertion `{text}` failed.")
