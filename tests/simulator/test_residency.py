"""How many blocks a GPU holds at a time, and where each of them runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call, marked_lines

from grader.records.sentences import sentence
from grader.simulator.driver import Options, Order, Simulator

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
#include <cooperative_groups.h>
__global__ void meet(unsigned* arrived) {
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1);
    while (atomicAdd(arrived, 0) < gridDim.x) {}  // meeting
    __threadfence();
  }
  __syncthreads();
}
__global__ void pass_on(unsigned* sums) {
  if (threadIdx.x != 0) return;
  volatile unsigned* before = sums + blockIdx.x - 1;
  unsigned sum = 0;
  if (blockIdx.x > 0) while ((sum = *before) == 0) {}
  __threadfence();
  atomicExch(sums + blockIdx.x, sum + 1);
}
__global__ void grid_barrier(unsigned* sum) {
  extern __shared__ char tile[];
  if (threadIdx.x == 0) atomicAdd(sum, 1 + 0 * tile[0]);
  cooperative_groups::this_grid().sync();
}
__global__ void endless(unsigned* p) {
  unsigned n = threadIdx.x;
  while (n != 1u << 31) n = n * 5 + 2;  // endless
  *p = n;
}

__device__ unsigned word(unsigned which) {
  unsigned value;
  if (which == 0) asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  if (which == 1) asm volatile("mov.u32 %0, %%warpid;" : "=r"(value));
  if (which == 2) asm volatile("mov.u32 %0, %%nsmid;" : "=r"(value));
  if (which == 3) asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(value));
  if (which == 4) asm volatile("mov.u32 %0, %%clock;" : "=r"(value));
  return value;
}
__global__ void look(unsigned* out, unsigned which) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x % 32 == 0) out[t / 32] = word(which);
}

constexpr unsigned threads = 1024, shared = 100 << 10, held = 108;
unsigned* zeros(unsigned n) {
  unsigned* p;
  cudaMalloc(&p, n * sizeof *p);
  cudaMemset(p, 0, n * sizeof *p);
  return p;
}
int launched(void (*kernel)(unsigned*), unsigned blocks) {
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  kernel<<<blocks, threads, shared>>>(zeros(blocks));
  return cudaDeviceSynchronize();
}
extern "C" int meets() { return launched(meet, held); }
extern "C" int too_many_meet() { return launched(meet, held + 2); }
extern "C" int many_pass_on() { return launched(pass_on, 3 * held); }
extern "C" int many_endless() { return launched(endless, held + 2); }

int grid(unsigned blocks, unsigned shared = 0) {
  unsigned* sum = zeros(1);
  void* arguments[] = {&sum};
  cudaFuncSetAttribute(grid_barrier, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  const int error = cudaLaunchCooperativeKernel((void*)grid_barrier, blocks, 1024, arguments, shared, 0);
  return error ? error + 1000 * cudaGetLastError() : cudaDeviceSynchronize();
}
int resident(unsigned shared = 0) {
  int blocks;
  cudaFuncSetAttribute(grid_barrier, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, grid_barrier, 1024, shared);
  cudaDeviceProp device;
  cudaGetDeviceProperties(&device, 0);
  return blocks * device.multiProcessorCount;
}
extern "C" int resident_small() { return resident(); }
extern "C" int resident_large() { return resident(shared); }
extern "C" int grid_fits() { return grid(resident()); }
extern "C" int large_grid_fits() { return grid(resident(shared), shared); }
extern "C" int grid_too_large() { return grid(resident() + 1); }
extern "C" int large_grid_too_large() { return grid(resident(shared) + 1, shared); }

unsigned look_at(unsigned which, unsigned blocks, unsigned warps, unsigned n) {
  unsigned *out = zeros(blocks * warps), value;
  look<<<blocks, 32 * warps>>>(out, which);
  cudaMemcpy(&value, out + n, sizeof value, cudaMemcpyDeviceToHost);
  return value;
}
extern "C" int highest_multiprocessor() {
  unsigned highest = 0;
  for (unsigned n = 0; n < 64; ++n) {
    const unsigned at = look_at(0, 64, 1, n);
    highest = at > highest ? at : highest;
  }
  return highest;
}
extern "C" int first_multiprocessor() { return look_at(0, 1, 1, 0); }
extern "C" int multiprocessors() { return look_at(2, 1, 1, 0); }
extern "C" int warps_of_multiprocessor() { return look_at(3, 1, 1, 0); }
extern "C" int first_warp() { return look_at(1, 1, 4, 0); }
extern "C" int third_warp() { return look_at(1, 1, 4, 2); }
extern "C" int clock_of_first() { return look_at(4, 108, 1, 0) & 0x7fffffff; }
extern "C" int clock_of_last() { return look_at(4, 108, 1, 107) & 0x7fffffff; }
"""
TOO_LARGE = 720
TIMEOUT = 702


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "residency.so", *LIBRARY)


def returned(library: Path, function: str, options: Options | None = None) -> int:
    with Simulator(options) as simulator:
        simulator.load(library)
        value = call(simulator, library, function)
        assert simulator.take_findings() == ()
    return value


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("function", ["meets", "many_pass_on", "grid_fits", "large_grid_fits"])
def test_blocks_that_fit_may_wait_for_each_other(function: str, options: Options, library: Path) -> None:
    assert returned(library, function, options) == 0


@pytest.mark.parametrize("options", EVERY_WAY)
def test_more_blocks_than_fit_wait_for_ever(options: Options, library: Path) -> None:
    with Simulator(replace(options, instruction_budget=2_000_000)) as simulator:
        simulator.load(library)
        assert call(simulator, library, "too_many_meet") == TIMEOUT
        (finding,) = (one for one in simulator.take_findings() if one.tool == "hang")
    assert finding.kind == "deadlock"
    assert finding.line in marked_lines(SOURCE)["meeting"]
    assert "of 110, 108 can be resident at a time, 1 on each of 108 multiprocessors" in str(sentence(finding))
    assert "and 2 wait until one of them ends" in str(sentence(finding))


def test_many_blocks_that_wait_for_nothing_are_no_deadlock(library: Path) -> None:
    with Simulator(Options(instruction_budget=200_000)) as simulator:
        simulator.load(library)
        assert call(simulator, library, "many_endless") == TIMEOUT
        assert [one.kind for one in simulator.take_findings()] == ["budget"]


@pytest.mark.parametrize(("function", "blocks"), [("resident_small", 216), ("resident_large", 108)])
def test_occupancy_is_that_of_an_a100(function: str, blocks: int, library: Path) -> None:
    assert returned(library, function) == blocks


@pytest.mark.parametrize(("function", "blocks"), [("grid_too_large", 217), ("large_grid_too_large", 109)])
def test_a_cooperative_grid_beyond_the_occupancy_is_refused(
    function: str, blocks: int, library: Path
) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == TOO_LARGE + 1000 * TOO_LARGE
        (finding,) = simulator.take_findings()
        assert simulator.runtime_errors() == (("cudaLaunchCooperativeKernel", TOO_LARGE),)
    assert finding.kind == "invalid_launch"
    assert f"a cooperative grid of {blocks} blocks; {blocks - 1} of them can be resident" in str(
        sentence(finding)
    )


def test_blocks_spread_over_the_multiprocessors_of_an_a100(library: Path) -> None:
    assert returned(library, "multiprocessors") == 108
    assert returned(library, "warps_of_multiprocessor") == 64
    for order in Order:
        step = 2 if order == Order.REVERSED else 1  # identifiers need not be contiguous
        highest = returned(library, "highest_multiprocessor", Options(order=order))
        assert step * 80 <= highest < step * 108


@pytest.mark.parametrize("function", ["first_multiprocessor", "first_warp"])
def test_where_a_block_runs_depends_on_the_order(function: str, library: Path) -> None:
    assert len({returned(library, function, Options(order=order, seed=5)) for order in Order}) == 3


def test_a_warp_has_another_number_in_the_multiprocessor_than_in_its_block(library: Path) -> None:
    first, third = (returned(library, function) for function in ("first_warp", "third_warp"))
    assert first != 0
    assert (third - first) % 64 == 2


def test_each_multiprocessor_has_a_clock_of_its_own(library: Path) -> None:
    first, last = (returned(library, function) for function in ("clock_of_first", "clock_of_last"))
    assert first != last
    assert min(first, last) > 100_000
