"""The streaming kernel on the simulator: it reads all of the source once, and writes all of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.simulator.simulate import simulate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PROGRAM = """
#include SOURCE
#include <cstdio>
#include <cstdlib>
#include <vector>
int main(int, char** given) {
  const long long reads = atoll(given[1]), writes = atoll(given[2]);
  std::vector<float> source(4 * reads), wanted(4 * writes), got(4 * writes);
  for (long long i = 0; i < 4 * reads; ++i) wanted[i % (4 * writes)] += source[i] = i % 1009;
  float4 *from, *to;
  cudaMalloc(&from, 16 * reads), cudaMalloc(&to, 16 * writes);
  cudaMemcpy(from, source.data(), 16 * reads, cudaMemcpyHostToDevice);
  launch_stream(from, 16 * reads, to, 16 * writes, nullptr);
  cudaMemcpy(got.data(), to, 16 * writes, cudaMemcpyDeviceToHost);
  puts(got == wanted ? "right" : "wrong");
}
"""


@pytest.fixture(scope="module")
def stream(program: Callable[[str, str], str]) -> str:
    return program("stream.cu", PROGRAM)


THIN = """
#include SOURCE
#include <cstdio>
#include <cstdlib>
#include <vector>
int main(int, char** given) {
  const long long reads = atoll(given[1]), writes = atoll(given[2]);
  std::vector<float> source(4 * reads), got(4 * writes, -1.0f);
  double wanted = 0, sum = 0;
  for (long long i = 0; i < 4 * reads; ++i) wanted += source[i] = i % 1009;
  float4 *from, *to;
  cudaMalloc(&from, 16 * reads), cudaMalloc(&to, 16 * writes);
  cudaMemcpy(from, source.data(), 16 * reads, cudaMemcpyHostToDevice);
  launch_stream(from, 16 * reads, to, 16 * writes, nullptr);
  cudaMemcpy(got.data(), to, 16 * writes, cudaMemcpyDeviceToHost);
  for (float one : got) sum += one;
  printf("%g of %g", sum, wanted);
}
"""


@pytest.fixture(scope="module")
def thin(program: Callable[[str, str], str]) -> str:
    return program("stream.cu", THIN)


def sums(thin: str, reads: int, writes: int, capfd: pytest.CaptureFixture[str]) -> tuple[float, float]:
    assert simulate([thin, str(reads), str(writes)], json_path=None, leak_check=False) == 0
    written, _, whole = capfd.readouterr().out.partition(" of ")
    return float(written), float(whole)


def test_a_far_larger_source_is_read_by_as_many_threads_as_it_has_loads(
    thin: str, capfd: pytest.CaptureFixture[str]
) -> None:
    written, whole = sums(thin, 8 * 512, 512, capfd)  # each thread has an element of the target
    assert written == whole
    for reads, writes in ((100_003, 3), (8, 1)):
        written, whole = sums(thin, reads, writes, capfd)
        assert 0 < written <= whole


SIZES: Mapping[str, tuple[int, int]] = {
    "one": (1, 1),
    "fewer reads": (700, 1000),
    "as many": (1000, 1000),
    "a few more": (1001, 1000),
    "twice": (2000, 1000),
    "more than twice": (2100, 1000),
    "more than four times": (4700, 1000),
    "large, twice": (2 << 18, 1 << 18),
    "large, a few more": ((1 << 18) + 7, 1 << 18),
}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
def test_every_element_is_read_once_and_added_where_it_belongs(
    stream: str, sizes: tuple[int, int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert simulate([stream, *map(str, sizes)], json_path=None, leak_check=False) == 0
    assert capfd.readouterr().out == "right\n"
