"""Cases that cost too much are made smaller; only what never fits is left out."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
import torch

from grader.assignments.cases import counted
from grader.problems.contents import EQUAL, HUGE, NORMAL, OFFSET, real
from grader.problems.formula import Range, problem
from grader.problems.grid import MAGNITUDES
from grader.problems.sizes import SECONDS, Cost

if TYPE_CHECKING:
    from grader.problems.problem import KernelProblem


def convolved(longest: int = 64, **changed: Any) -> KernelProblem:  # noqa: ANN401
    return problem(
        id="convolution",
        file="convolution.cu",
        launcher="convolve(float* y, const float* x, const float* w, int batch, int c, int o, int n, int k)",
        formula=lambda x, w: torch.conv2d(x, w),  # noqa: PLW0108 - it has no signature
        inputs=lambda batch, c, o, n, k: {"x": real(batch, c, n + k - 1, n + k - 1), "w": real(o, c, k, k)},
        sizes={
            **dict.fromkeys(("batch", "c", "o"), Range(1, 512)),
            "n": Range(1, 512),
            "k": Range(1, longest),
        },
        **changed,
    )


def work(asked: KernelProblem) -> float:
    """Multiplications of all derived cases in the orders that they run in."""
    sizes = [case.sizes for case in asked.cases(0) if case.group != MAGNITUDES]
    return sum(3.0 * of["batch"] * of["c"] * of["o"] * of["n"] ** 2 * of["k"] ** 2 for of in sizes)


def test_sizes_are_lowered_until_all_cases_are_affordable() -> None:
    usual, quick = convolved(), convolved(seconds=SECONDS / 10)
    assert work(usual) < 25e6 * SECONDS
    assert work(usual) / 50 < work(quick) < work(usual) / 5
    for name in ("batch", "c", "o"):
        assert max(case.sizes[name] for case in quick.cases(0)) == 512


def test_no_distribution_is_left_out_where_there_are_many_sizes() -> None:
    counts = Counter(case.distribution for case in convolved().cases(0) if case.group != MAGNITUDES)
    assert [counts[name] for name in (OFFSET, HUGE, EQUAL)] == [2, 2, 2]


def test_a_case_that_never_fits_is_left_out() -> None:
    sizes = [case.sizes for case in convolved(most=1000).cases(0)]
    assert max(of["n"] for of in sizes) < 33
    assert max(of["c"] for of in sizes) >= 257


def test_many_cases_alone_are_no_reason_to_lower_sizes() -> None:
    few = Cost(elements=lambda sizes: sizes["n"], multiplications=lambda _: 0)
    assert few.of_case({"n": 1}) > 100 * few.of_work({"n": 1})


@pytest.mark.parametrize(("formula", "products"), [(lambda x: x @ x.T, 300**3), (lambda x: x * x, 0)])
def test_products_are_counted(formula: Any, products: int) -> None:  # noqa: ANN401
    asked = problem(
        id="square",
        file="square.cu",
        launcher="square(float* y, const float* x, int n)",
        formula=formula,
        inputs=lambda n: {"x": real(n, n)},
        sizes={"n": Range(1, 400)},
    )
    assert asked.space is not None
    assert asked.seconds is not None
    small, large = (asked.space.case("group", {"n": n}, NORMAL, 1) for n in (1, 300))
    per_order = (asked.seconds(large) - asked.seconds(small)) * 25e6 / 3
    assert per_order == pytest.approx(products + 4 * (2 * 300**2), rel=1e-3)


def test_the_cost_is_said() -> None:
    assert re.match(r"\d+ cases, about 2\d s on the simulator: small sizes ", counted(convolved()))
