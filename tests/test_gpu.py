"""What only a GPU can show: the same verdicts as on the simulator, and a speed."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader import grading
from grader.assignments.assignment import load
from grader.verdict import Verdict

pytestmark = pytest.mark.gpu
REFERENCE = Path(__file__).parents[1] / "reference"
FOUR = ("softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward")
ONE_THREAD = """
#include <cuda_runtime.h>

__global__ void one_by_one(float* y, float* vars, float* means, const float* x, const float* scale,
                           const float* bias, int rows, int columns) {
  for (int row = 0; row < rows; ++row, x += columns, y += columns) {
    float sum = 0.0f, squares = 0.0f;
    for (int i = 0; i < columns; ++i) sum += x[i];
    const float mean = sum / columns;
    for (int i = 0; i < columns; ++i) squares += (x[i] - mean) * (x[i] - mean);
    const float variance = squares / columns;
    for (int i = 0; i < columns; ++i) y[i] = (x[i] - mean) * rsqrtf(variance + 1e-8f) * scale[i] + bias[i];
    means[row] = mean;
    vars[row] = variance;
  }
}

extern "C" void launch_layernorm(float* y, float* vars, float* means, const float* x, const float* scale,
                                 const float* bias, int rows, int columns, cudaStream_t stream) {
  one_by_one<<<1, 1, 0, stream>>>(y, vars, means, x, scale, bias, rows, columns);
}
"""


@pytest.mark.parametrize("problem", FOUR)
def test_the_reference_is_right_and_reaches_its_target(problem: str) -> None:
    request = grading.Request(REFERENCE, load("llm_systems_3"), (problem,), "gpu", "auto", "auto", seed=1)
    result = grading.grade(request).problems[0]
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.PASS, result.performance.message
    assert result.points.earned == result.points.possible


def test_a_right_kernel_of_one_thread_fails_without_hours_of_timing(tmp_path: Path) -> None:
    (tmp_path / "layernorm_kernel.cu").write_text(ONE_THREAD)
    request = grading.Request(
        tmp_path, load("llm_systems_3"), ("layernorm_forward",), "gpu", "auto", "auto", seed=1
    )
    (result,) = grading.grade(request).problems
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.FAIL
    assert "too slow to go on" in result.performance.message
