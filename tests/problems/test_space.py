"""Every problem for launchers says which inputs it may have, and makes a judged case of any of them."""

from __future__ import annotations

import numpy as np
import pytest
from spaces import PROBLEMS, space_of

from grader.problems.problem import Range

SEED = 5


@pytest.mark.parametrize("name", PROBLEMS)
def test_any_sizes_and_distribution_become_a_judged_case(name: str) -> None:
    problem = PROBLEMS[name]
    space = space_of(problem)
    random = np.random.default_rng(SEED)
    tried = 0
    for distribution in space.distributions:
        sizes = {key: one.nearest(int(random.integers(2, 20))) for key, one in space.ranges.items()}
        if not space.legal(sizes, distribution):
            continue
        tried += 1
        case = space.case("a group", sizes, distribution, SEED)
        assert case.group == "a group"
        assert list(case.sizes.values()) == [*sizes.values()]
        assert case == space.case("a group", sizes, distribution, SEED)
        assert case.seed != space.case("a group", sizes, distribution, SEED + 1).seed
        given = problem.inputs(case)
        shapes = [*given.outputs.values(), *(one.shape for one in given.arrays.values() if one is not None)]
        held = sum(int(np.prod(shape)) for shape in shapes)
        assert held / 3 <= space.elements(sizes) <= 8 * held
        expected = problem.oracle(case, given)
        assert all(candidate.expected.size for one in expected.values() for candidate in one.candidates)
    assert tried >= len(space.distributions) * 2 / 3


def test_a_problem_for_one_type_has_the_distributions_of_that_type() -> None:
    problem = PROBLEMS["rmsnorm/rmsnorm_forward"]
    assert {one.partition(", ")[0] for one in space_of(problem).distributions} == set(problem.by_type)
    for dtype, typed in problem.by_type.items():
        assert {one.partition(", ")[0] for one in space_of(typed).distributions} == {dtype}


def test_a_range_holds_the_multiples_between_its_ends() -> None:
    multiples = Range(4, 12, 4)
    assert [value for value in range(20) if value in multiples] == [4, 8, 12]
