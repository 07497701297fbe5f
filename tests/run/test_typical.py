"""Hints on speed come from the cases that are most like those that are timed."""

from __future__ import annotations

import pytest
from first_assignment import KERNELS

from grader.problems.problem import Case
from grader.run.typical import typical


def case(rows: int, hidden: int, dtype: str = "float32") -> Case:
    name = f"{rows} x {hidden}, {dtype}"
    return Case(name, "all", {"rows": rows, "hidden": hidden}, "normal", seed=1, dtype=dtype)


CASES = (case(1_050_011, 4), case(540, 4000), case(3, 4096), case(5, 1000), case(9, 4096, "bfloat16"))


@pytest.mark.parametrize(
    ("timed", "closest"),
    [
        ((case(256, 4096),), {"540 x 4000, float32"}),
        ((case(6, 4096), case(1 << 21, 8)), {"3 x 4096, float32", "1050011 x 4, float32"}),
        ((case(9, 2048, "bfloat16"),), {"9 x 4096, bfloat16"}),
        ((), {one.name for one in CASES}),
        ((Case("a network", "all", {"layers": 4}, "normal", seed=1),), {one.name for one in CASES}),
    ],
)
def test_the_closest_in_size_is_typical_of_a_timed_case(timed: tuple[Case, ...], closest: set[str]) -> None:
    assert typical(CASES, timed) == closest


def test_an_element_type_counts_as_much_as_twice_the_size() -> None:
    halves, floats = case(64, 512, "float16"), case(64, 512 * 3)
    assert typical((halves, floats), (case(64, 512),)) == {halves.name}
    assert typical((halves, case(64, 608)), (case(64, 512),)) == {"64 x 608, float32"}


def test_a_size_that_is_a_multiple_as_the_timed_one_is_closer() -> None:
    assert typical((case(64, 514), case(64, 256)), (case(64, 512),)) == {"64 x 256, float32"}
    assert typical((case(64, 514), case(64, 64)), (case(64, 512),)) == {"64 x 514, float32"}


@pytest.mark.parametrize("problem", KERNELS.values(), ids=KERNELS)
def test_a_few_cases_are_typical_and_they_are_not_the_smallest(problem: object) -> None:
    cases, timed = problem.cases(1), problem.timing_cases(1)  # type: ignore[attr-defined]
    names = typical(cases, timed)
    assert 0 < len(names) <= len(timed)
    assert all(max(one.sizes.values()) >= 64 for one in cases if one.name in names)
