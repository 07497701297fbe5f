"""A finding in an inlined function names the calls that lead there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from built_programs import LIBRARY, Compile, call, marked_lines

from grader.records.sentences import sentence
from grader.simulator.driver import Simulator

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.findings import Finding, Line, Place

HEADER = """
__device__ inline float warp_sum(float x) {
  for (int o = 16; o > 0; o /= 2) x += __shfl_xor_sync(0xffffffff, x, o);
  return x;
}
template <class T>
__device__ inline T block_sum(T x) {
  __shared__ T slots[32];
  x = warp_sum(x);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;  // write
  __syncthreads();
  T sum = 0;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += slots[warp];  // read
  return sum;
}
__device__ inline void store(float* to, int at, float x) {
  to[at] = x;  // store
}
"""
SOURCE = """
#include "block_sum.h"
__device__ inline void keep(float* to, int at, float x) {
  store(to, at, x);  // inner
}
__global__ void moments(const float* in, float* out) {
  const float x = in[threadIdx.x];
  const float mean = block_sum(x);  // first
  const float square = block_sum(x * x);  // second
  if (threadIdx.x == 0) keep(out, 2, mean + square);  // outer
}
__global__ void rounds(const float* in, float* out) {
  float x = in[threadIdx.x];
#pragma unroll 1
  for (int i = 0; i < 3; ++i) {
    x = block_sum(x);  // odd
    __syncthreads();
    x = block_sum(x + 1);  // even
  }
  if (threadIdx.x == 0) out[0] = x;  // end
}
__global__ void plain(float* out) { out[2] = 1; }  // plain
extern "C" int run() {
  float *in, *out;
  cudaMalloc(&in, 128 * sizeof(float));
  cudaMalloc(&out, 2 * sizeof(float));
  cudaMemset(in, 0, 128 * sizeof(float));
  moments<<<1, 128>>>(in, out);
  plain<<<1, 1>>>(out);
  rounds<<<1, 128>>>(in, out);
  return cudaDeviceSynchronize();
}
"""
IN_HEADER = {word: min(lines) for word, lines in marked_lines(HEADER).items()}
IN_SOURCE = {word: min(lines) for word, lines in marked_lines(SOURCE).items()}


@pytest.fixture(scope="module")
def findings(nvcc: Compile, tmp_path_factory: pytest.TempPathFactory) -> tuple[Finding, ...]:
    folder: Path = tmp_path_factory.mktemp("chains")
    (folder / "block_sum.h").write_text(HEADER)
    library = nvcc(SOURCE, "call_chains.so", *LIBRARY, "-I", str(folder))
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, "run") == 0
        return simulator.take_findings()


def of(findings: tuple[Finding, ...], kernel: str, tool: str) -> Finding:
    return next(one for one in findings if kernel in one.kernel and one.tool == tool)


def named(place: Place) -> list[tuple[str, int]]:
    lines: tuple[Line, ...] = (place, *place.calls)
    return [(line.file.rpartition("/")[2], line.line) for line in lines]


def test_both_accesses_of_a_race_name_their_calls(findings: tuple[Finding, ...]) -> None:
    race = of(findings, "moments", "racecheck")
    read = [("block_sum.h", IN_HEADER["read"]), ("call_chains.so.cu", IN_SOURCE["first"])]
    write = [("block_sum.h", IN_HEADER["write"]), ("call_chains.so.cu", IN_SOURCE["second"])]
    assert sorted(map(named, race.places)) == sorted([read, write])
    first, second = (f"call_chains.so.cu:{IN_SOURCE[word]}" for word in ("first", "second"))
    assert f"(line {IN_HEADER['write']}) called at {second}" in str(sentence(race))
    assert f"(line {IN_HEADER['read']}) called at {first}" in str(sentence(race))
    assert str(sentence(race)).endswith(
        f"; the second block_sum at {second} begins before all threads have left the first ({first})"
    )


def test_calls_in_a_loop_begin_again(findings: tuple[Finding, ...]) -> None:
    race = of(findings, "rounds", "racecheck")
    odd, even = (f"call_chains.so.cu:{IN_SOURCE[word]}" for word in ("odd", "even"))
    assert str(sentence(race)).endswith(
        f"; block_sum at {odd} begins again before all threads have left that at {even}"
    )


def test_a_chain_ends_in_the_kernel(findings: tuple[Finding, ...]) -> None:
    beyond = of(findings, "moments", "memcheck")
    assert [named(place) for place in beyond.places] == [
        [
            ("block_sum.h", IN_HEADER["store"]),
            ("call_chains.so.cu", IN_SOURCE["inner"]),
            ("call_chains.so.cu", IN_SOURCE["outer"]),
        ]
    ]
    assert str(sentence(beyond)).endswith(
        f"; called at call_chains.so.cu:{IN_SOURCE['inner']}, at call_chains.so.cu:{IN_SOURCE['outer']}"
    )


def test_what_is_not_inlined_has_no_calls(findings: tuple[Finding, ...]) -> None:
    beyond = of(findings, "plain", "memcheck")
    assert [named(place) for place in beyond.places] == [[("call_chains.so.cu", IN_SOURCE["plain"])]]
    assert "called at" not in str(sentence(beyond))
