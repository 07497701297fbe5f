"""Blocks whose registers no multiprocessor has, where machine code beside the PTX tells their number."""

from pathlib import Path

import pytest
from built_programs import LIBRARY, Compile, call

from grader.records.sentences import sentence
from grader.simulator.driver import Simulator

SOURCE = """
__device__ float mixed(const float* x) {
  float v[100], sum = 0;
  for (int i = 0; i < 100; ++i) v[i] = x[i * 32 + threadIdx.x % 32];
  __syncthreads();
  for (int k = 0; k < 3; ++k) {
    for (int i = 0; i < 100; ++i) sum += v[i] = v[i] * v[(i * 7 + k) % 100] + sum;
  }
  return sum;
}
__global__ void many(const float* x, float* y) { y[threadIdx.x] = mixed(x); }
__global__ void __launch_bounds__(1024) bounded(const float* x, float* y) { y[threadIdx.x] = mixed(x); }

template <class Kernel>
int launched(Kernel kernel, int threads) {
  float *x, *y;
  cudaMalloc(&x, 3200 * sizeof(float));
  cudaMalloc(&y, 1024 * sizeof(float));
  cudaMemset(x, 0, 3200 * sizeof(float));
  kernel<<<1, threads>>>(x, y);
  const int error = cudaGetLastError();
  return error ? error : cudaDeviceSynchronize();
}
extern "C" int many_1024() { return launched(many, 1024); }
extern "C" int many_256() { return launched(many, 256); }
extern "C" int bounded_1024() { return launched(bounded, 1024); }
extern "C" int many_as_it_may() {
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, many);
  if (attributes.numRegs < 66 || attributes.maxThreadsPerBlock >= 1024) return -1;
  return launched(many, attributes.maxThreadsPerBlock);
}
extern "C" int blocks_of_many() {
  int blocks;
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, many, 256, 0);
  return blocks;
}
"""
MACHINE_CODE = ("-O3", "-gencode", "arch=compute_80,code=sm_80")
LAUNCH_OUT_OF_RESOURCES = 701


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE, "registers.so", *LIBRARY, *MACHINE_CODE)


def test_a_block_with_too_many_registers_does_not_start(library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, "many_1024") == LAUNCH_OUT_OF_RESOURCES
        (finding,) = simulator.take_findings()
    assert finding.kind == "invalid_launch"
    assert "a block of 1024 threads with " in str(sentence(finding))
    assert "a multiprocessor has 65536 (__launch_bounds__(1024)" in str(sentence(finding))


@pytest.mark.parametrize("function", ["many_256", "bounded_1024", "many_as_it_may"])
def test_a_block_that_has_room_starts(function: str, library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, function) == 0
        assert simulator.take_findings() == ()


def test_registers_limit_how_many_blocks_a_multiprocessor_holds(library: Path) -> None:
    with Simulator() as simulator:
        simulator.load(library)
        assert 1 <= call(simulator, library, "blocks_of_many") <= 3


def test_without_machine_code_the_registers_are_not_known(nvcc: Compile) -> None:
    library = nvcc(SOURCE, "registers_ptx.so", *LIBRARY)
    with Simulator() as simulator:
        simulator.load(library)
        assert call(simulator, library, "many_1024") == 0
