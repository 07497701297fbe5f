"""Races within one statement: an atomic or another index mends them, and the reason is no missing barrier."""

from pathlib import Path

import pytest
from built_programs import EVERY_WAY, LIBRARY, Compile, call

from grader.simulator.driver import Options, Simulator

SOURCE = """
#define T threadIdx.x

__global__ void counts_of_lanes(int* p) { p[T / 2 % 16]++; }
__global__ void counts_of_warps(int* p) { p[T % 32] += 3; }
__global__ void counts_in_a_loop(int* p) {
  for (int i = 0; i < 3; ++i) p[(T + i) % 7]++;
}
__global__ void sum_of_block(int* p) { *p = *p + p[64 + T] * 2; }
__global__ void counts_in_shared(int* p) {
  __shared__ int bins[4];
  if (T < 4) bins[T] = 0;
  __syncthreads();
  bins[p[T] & 3]++;
  __syncthreads();
  if (T < 4) p[T] = bins[T];
}
__global__ void rows_overlap(int* p) {
  __shared__ int rows[16][8];
  if (T / 32 * 8 + T % 32 < 128) rows[T / 32][T % 32] = T;
  __syncthreads();
  p[T] = rows[T / 8][T % 8];
}
__global__ void elements_overlap(int* p) { p[T % 32 + T / 32 * 8] = T; }
__global__ void reduced_without_barriers(int* p) {
  __shared__ int s[128];
  s[T] = p[T];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (T < half) s[T] += s[T + half];
  }
  *p = s[0];
}
__global__ void shifted_in_place(int* p) { p[T] = p[T + 1] + 1; }
__global__ void slots_again_too_early(int* p) {
  __shared__ int slots[4];
  for (int i = 0; i < 2; ++i) {
    if (T % 32 == 0) slots[(T / 32 + i) % 4] = T + i;
  }
  __syncthreads();
  if (T < 4) p[T] = slots[T];
}

template <class F> int launched(F kernel) {
  int* p;
  cudaMalloc(&p, 4096);
  cudaMemset(p, 1, 4096);
  kernel<<<1, 128>>>(p);
  return cudaDeviceSynchronize();
}
#define FUNCTION(kernel) extern "C" int run_##kernel() { return launched(kernel); }
"""
REASONS = {
    "counts_of_lanes": {"update"},
    "counts_of_warps": {"update"},
    "counts_in_a_loop": {"update"},
    "sum_of_block": {"update"},
    "counts_in_shared": {"update"},
    "rows_overlap": {"one_statement"},
    "elements_overlap": {"one_statement"},
    "reduced_without_barriers": {"no_syncthreads", "no_syncwarp"},
    "shifted_in_place": {"no_syncthreads", "no_syncwarp"},
    "slots_again_too_early": {"no_syncthreads"},
}


@pytest.fixture(scope="module")
def library(nvcc: Compile) -> Path:
    return nvcc(SOURCE + "\n".join(f"FUNCTION({kernel})" for kernel in REASONS), "statement.so", *LIBRARY)


@pytest.mark.parametrize("options", EVERY_WAY)
@pytest.mark.parametrize("kernel", REASONS)
def test_a_barrier_is_missing_only_where_one_can_stand(kernel: str, options: Options, library: Path) -> None:
    with Simulator(options) as simulator:
        simulator.load(library)
        assert call(simulator, library, f"run_{kernel}") == 0
        assert simulator.synchronize()
        findings = simulator.take_findings()
    reasons = {finding.reason for finding in findings if finding.kind.startswith("race")}
    assert reasons
    assert reasons <= REASONS[kernel]
