"""What only a GPU can show: the same verdicts as on the simulator, and a speed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.assignments.assignment import load
from grader.records.verdict import Verdict
from grader.run import grading

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
        REFERENCE, load("llm_systems_3"), (problem,), "gpu", "auto", "auto", seed=1
    )
    result = grading.grade(request).problems[0]
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.PASS, result.performance.message
    assert result.points.earned == result.points.possible


def test_a_right_kernel_of_one_thread_fails_without_hours_of_timing(tmp_path: Path) -> None:
    shutil.copy(HONEST, tmp_path)
    (tmp_path / "layernorm_kernel.cu").write_text(ONE_THREAD)
    request = grading.GradingRequest(
        tmp_path, load("llm_systems_3"), ("layernorm_forward",), "gpu", "auto", "auto", seed=1
    )
    (result,) = grading.grade(request).problems
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.FAIL
    assert "too slow to go on" in result.performance.message
