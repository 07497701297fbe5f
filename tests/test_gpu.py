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


@pytest.mark.parametrize("problem", FOUR)
def test_the_reference_is_right_and_reaches_its_target(problem: str) -> None:
    request = grading.Request(REFERENCE, load("llm_systems_3"), (problem,), "gpu", "auto", "auto", seed=1)
    result = grading.grade(request).problems[0]
    assert result.correctness.verdict is Verdict.PASS
    assert result.performance.verdict is Verdict.PASS, result.performance.message
    assert result.points.earned == result.points.possible
