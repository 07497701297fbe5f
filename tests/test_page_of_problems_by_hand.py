"""The problem that docs/by_hand.md shows is one, and what the page says of expectations holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.judge.correctness.comparison import compare
from grader.problems.problem import Candidate, Expectation

if TYPE_CHECKING:
    from grader.problems.problem import KernelProblem

PAGE = Path(__file__).parents[1] / "docs" / "by_hand.md"


def shown() -> KernelProblem:
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module: dict[str, KernelProblem] = {}
    exec(text, module)
    return module["PROBLEM"]


def test_right_kernels_pass_with_margin_and_wrong_ones_fail() -> None:
    problem = shown()
    for case in problem.cases(1):
        given = problem.inputs(case)
        x, expectation = given.arrays["x"], problem.oracle(case, given)["y"]
        assert x is not None
        length = np.sqrt(np.add.accumulate(x * x, -1, dtype=np.float32)[:, -1:])
        with np.errstate(invalid="ignore"):
            right = x / length
        found = compare("y", expectation, right)
        assert found.right
        assert found.max_error <= found.allowed / 2
        assert compare("y", expectation, np.nan_to_num(right)).right
        assert compare("y", expectation, right * np.float32(1.001)).bad > 0
        if case.distribution == "zeros":
            assert compare("y", expectation, np.where(np.isnan(right), np.float32(1), right)).bad == 3 * 64


@pytest.mark.parametrize(
    ("expected", "allowed", "right", "wrong"),
    [
        (2.0, 0.5, [1.5, 2.5], [1.0, np.nan, np.inf]),
        (np.int64(2), 9.0, [2], [3]),
        (np.nan, 1.0, [np.nan], [0.0, np.inf]),
        (-np.inf, 1.0, [-np.inf], [np.inf, -1e30, np.nan]),
        (0.0, np.inf, [1e30, -np.inf], [np.nan]),
    ],
)
def test_what_is_right_in_a_candidate(
    expected: float, allowed: float, right: list[float], wrong: list[float]
) -> None:
    expectation = Expectation((Candidate(np.array([expected]), np.array([allowed])),))
    kind = np.array([expected]).dtype
    for number in right:
        assert compare("y", expectation, np.array([number], kind)).right
    for number in wrong:
        assert not compare("y", expectation, np.array([number], kind)).right


def test_of_finite_rows_any_finite_numbers_are_right() -> None:
    expectation = Expectation((Candidate(np.zeros((1, 1)), np.zeros((1, 1))),), np.array([True]))
    assert compare("y", expectation, np.array([[7.0]])).right
    assert not compare("y", expectation, np.array([[np.inf]])).right
