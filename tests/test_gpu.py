"""What only a GPU can show: the same verdicts as on the simulator, and a speed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.assignments.assignment import load
from grader.problems.grid import MAGNITUDES
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.options import GradingOptions

pytestmark = pytest.mark.gpu
REFERENCE = Path(__file__).parents[1] / "reference"
FOUR = ("softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward")
HONEST = Path(__file__).parent / "cheats" / "honest.cuh"
ONE_THREAD = """
#include "honest.cuh"

__global__ void one_by_one(float* out, float* vars, float* means, const float* inp, const float* scale,
                           const float* bias, int rows, int columns) {
  for (int row = 0; row < rows; ++row) norm_row_alone(out, vars, means, inp, scale, bias, row, columns);
}

LAUNCH_LAYERNORM {
  one_by_one<<<1, 1, 0, stream>>>(ln_res, vars, means, inp, scale, bias, batch_size, hidden_dim);
}
"""


@pytest.mark.parametrize("problem", FOUR)
def test_the_reference_is_right_and_reaches_its_target(problem: str) -> None:
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), (problem,), GradingOptions("gpu"), seed=1
    )
    result = grading.grade(request).problems[0]
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.PASS, result.performance.message
    assert result.points.earned == result.points.possible


def test_a_right_kernel_of_one_thread_fails_without_hours_of_timing(tmp_path: Path) -> None:
    shutil.copy(HONEST, tmp_path)
    (tmp_path / "layernorm_kernel.cu").write_text(ONE_THREAD)
    request = grading.GradingRequest(
        tmp_path, load("llm_systems_3"), ("layernorm_forward",), GradingOptions("gpu"), seed=1
    )
    (result,) = grading.grade(request).problems
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.FAIL
    assert "too slow to go on" in result.performance.message


FLOAT_PLACES = """
#include <cuda_runtime.h>

__device__ unsigned long long key(float number, float place) {
  const unsigned bits = __float_as_uint(number + 0.0f);
  const unsigned ordered = bits >> 31 ? ~bits : bits | 1u << 31;
  return static_cast<unsigned long long>(ordered) << 32 | ~static_cast<unsigned>(place);
}

__global__ void largest(unsigned long long* best, const float* x, int n) {
  unsigned long long mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    mine = max(mine, key(x[i], static_cast<float>(i)));  // from 2^24 on not every place is a float
  atomicMax(best, mine);
}

__global__ void put(int* place, const unsigned long long* best) { *place = static_cast<int>(~*best); }

extern "C" void launch_argmax(int* place, const float* x, int n, cudaStream_t stream) {
  unsigned long long* best;
  cudaMallocAsync(&best, sizeof *best, stream);
  cudaMemsetAsync(best, 0, sizeof *best, stream);
  largest<<<256, 256, 0, stream>>>(best, x, n);
  put<<<1, 1, 0, stream>>>(place, best);
  cudaFreeAsync(best, stream);
}
"""


def test_sizes_that_only_a_gpu_gets_to_are_judged(tmp_path: Path) -> None:
    (tmp_path / "argmax.cu").write_text(FLOAT_PLACES)
    wrong: set[int] = set()
    for seed in (1, 2, 3):
        request = grading.GradingRequest(
            tmp_path, load("first_kernels"), ("argmax",), GradingOptions("gpu"), seed=seed
        )
        (result,) = grading.grade(request).problems
        cases = [case for case in result.correctness.cases if case.verdict is not Verdict.PASS]
        assert {case.group for case in cases} <= {MAGNITUDES}
        wrong |= {int(case.name.partition(",")[0]) for case in cases}
    assert wrong
    assert min(wrong) > 1 << 24
