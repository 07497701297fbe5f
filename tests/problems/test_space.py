"""Every problem for launchers says which inputs it may have, and makes a judged case of any of them."""

from __future__ import annotations

import numpy as np
import pytest
from spaces import PROBLEMS, space_of

from grader.problems import grid
from grader.problems.contents import IN_GRIDS, real
from grader.problems.formula import problem
from grader.problems.problem import Range, fitted

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
    assert {one.partition(", ")[0] for one in space_of(problem).distributions} == set(problem.launchers)
    for dtype, typed in problem.launchers.items():
        assert {one.partition(", ")[0] for one in space_of(typed).distributions} == {dtype}


def test_a_range_holds_the_multiples_between_its_ends() -> None:
    multiples = Range(4, 12, 4)
    assert [value for value in range(20) if value in multiples] == [4, 8, 12]


TOP_K = {"rows": Range(1, 40), "n": Range(1, 1000), "k": Range(2, 300, multiple_of=2, at_most="n")}


def test_a_size_that_is_at_most_another_one_is_so_in_every_case() -> None:
    asked = problem(
        id="top",
        file="top.cu",
        launcher="launch_top(float* y, const float* x, int rows, int n, int k, cudaStream_t stream)",
        formula=lambda x, k: x.topk(k).values,
        inputs=lambda rows, n: {"x": real(rows, n)},
        sizes=TOP_K,
    )
    assert asked.space is not None
    assert asked.space.least == {"rows": 1, "n": 2, "k": 2}
    for seed in range(5):
        for case in (*asked.cases(seed), *grid.beyond_simulator(asked.space, seed)):
            assert asked.space.legal(case.sizes, case.distribution), case
            queued = {**case.sizes, **case.queued}
            assert queued["k"] <= queued["n"]
        sizes = [case.sizes for case in asked.cases(seed)]
        assert {300} <= {of_case["k"] for of_case in sizes}
        equal = sum(of_case["k"] == of_case["n"] for of_case in sizes)
        assert 0 < equal < len(sizes) / 4  # any order of all numbers would be right there
        for distribution in asked.space.distributions[1:]:
            assert (
                any(
                    case.sizes["k"] < case.sizes["n"]
                    for case in asked.cases(seed)
                    if case.group == distribution
                )
                or distribution in IN_GRIDS
            )
    pairs = grid.required(asked.space)
    assert grid.missing(asked.space, asked.cases(1)) == []
    assert (("n", 5), ("k", 5)) in pairs
    assert (("n", 4), ("k", 5)) not in pairs


def test_sizes_grow_or_are_lowered_to_fit() -> None:
    sizes = {"rows": 3, "n": 7, "k": 20}
    assert fitted(TOP_K, sizes) == {"rows": 3, "n": 7, "k": 6}
    assert fitted(TOP_K, sizes, ("k",)) == {"rows": 3, "n": 20, "k": 20}
    assert fitted(TOP_K, sizes, ("n", "k")) == {"rows": 3, "n": 7, "k": 6}
    chain = {"a": Range(1, 9, at_most="b"), "b": Range(1, 9, at_most="c"), "c": Range(1, 9)}
    assert fitted(chain, {"a": 8, "b": 1, "c": 2}, ("a",)) == {"a": 8, "b": 8, "c": 8}
    assert fitted(chain, {"a": 8, "b": 5, "c": 2}) == {"a": 2, "b": 2, "c": 2}
