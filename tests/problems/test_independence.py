"""What falls apart into rows, and what may be rotated, is found from the formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from problems.formulas import FORMULAS

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Case

if TYPE_CHECKING:
    from torch import Tensor

    from grader.problems.problem import KernelProblem

PARTS = {
    "saxpy": [("y",)],
    "sum_rows": [("total", "first")],
    "mean_square": [("y",)],
    "mean_square_backward": [("x_grad",), ("scale_grad",)],
    "transpose": [("y",)],
    "matmul": [("c",)],
    "embedding": [("y",)],
    "masked_softmax": [("y",)],
    "rope": [],
    "stencil": [("x",)],
    "attention": [],
    "histogram": [],
    "sort": [("values", "places")],
    "segments": [],
}
TURNING = {
    "saxpy": {"x", "y"},
    "mean_square_backward": {"y_grad", "x", "x_grad"},
    "histogram": {"keys"},
    "matmul": {"a", "c"},
    "rope": set(),
    "stencil": set(),
    "transpose": set(),
}


@pytest.mark.parametrize("name", PARTS)
def test_outputs_fall_apart_where_each_row_has_its_own_result(name: str) -> None:
    assert [slices.outputs for slices in FORMULAS[name].slices] == PARTS[name]


@pytest.mark.parametrize("name", TURNING)
def test_arrays_turn_together_where_places_do_not_matter(name: str) -> None:
    assert set(FORMULAS[name].turning) == TURNING[name]


def compare_window(asked: KernelProblem, case: Case, first: int, length: int) -> None:
    """Compare ``length`` slices from ``first`` on, computed alone, with those of the whole."""
    given = asked.inputs(case)
    whole = asked.oracle(case, given)
    for slices in asked.slices:
        count = slices.count(case)
        first, length = min(first, count - 1), min(length, count - min(first, count - 1))
        part, kept = slices.window(case, given, first, length)
        alone = asked.oracle(case, part)
        for output in slices.outputs:
            got = alone[output].candidates[0].expected
            got = got[kept] if slices.halo(case) else got
            wanted = whole[output].candidates[0].expected.reshape(count, -1)[first : first + length]
            np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [name for name, parts in PARTS.items() if parts])
@pytest.mark.parametrize("first", [0, 13, 1000])
def test_a_part_alone_is_expected_to_be_what_it_is_in_the_whole(name: str, first: int) -> None:
    case = next(case for case in FORMULAS[name].cases(4) if case.group == "streams")
    compare_window(FORMULAS[name], case, first, 3)


def spread(times: int) -> KernelProblem:
    """The mean of both neighbours, ``times`` times; at the ends of one."""

    def formula(x: Tensor, more: int) -> Tensor:
        for _ in range(times * more):
            x = (torch.cat([x[:1], x[:-1]]) + torch.cat([x[1:], x[-1:]])) / 2
        return x

    return problem(
        id="spread",
        file="spread.cu",
        launcher="launch_spread(float* y, const float* x, int n, int more)",
        formula=formula,
        inputs=lambda n: {"x": real(n)},
        sizes={"n": Range(1, 10_000), "more": Range(1, 4)},
    )


@pytest.mark.parametrize("more", [1, 2, 4])
def test_results_that_need_those_near_them_get_as_many_as_the_case_asks_for(more: int) -> None:
    asked = spread(3)
    case = Case("any", "", {"n": 200, "more": more}, NORMAL, 1)
    (slices,) = asked.slices
    assert slices.halo(case) == 3 * more
    for first in (0, 1, 100, 197, 199):
        compare_window(asked, case, first, 2)


def test_what_needs_too_many_neighbours_is_judged_whole() -> None:
    assert spread(20).slices == ()
    (slices,) = spread(5).slices  # one step needs 5, but four need 20
    assert slices.halo(Case("any", "", {"n": 200, "more": 4}, NORMAL, 1)) == 200
    compare_window(spread(5), Case("any", "", {"n": 200, "more": 4}, NORMAL, 1), 100, 2)
