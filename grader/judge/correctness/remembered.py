"""A cache of inputs and oracles of cases, for submissions that are judged on the same seed."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from grader.problems.problem import Expectation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.problems.problem import Candidate, Case, Inputs, Problem


def remembered(problem: Problem) -> Problem:
    """``problem`` with a cache of inputs and oracles by case; the cached arrays are read-only."""
    inputs: dict[tuple[str, int], Inputs] = {}
    oracles: dict[tuple[str, int], Mapping[str, Expectation]] = {}

    def inputs_of(case: Case) -> Inputs:
        place = case.name, case.seed
        if place not in inputs:
            made = problem.inputs(case)
            for array in made.arrays.values():
                if array is not None:
                    array.flags.writeable = False
            inputs[place] = made
        return inputs[place]

    def oracle_of(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        place = case.name, case.seed
        if given is not inputs.get(place):
            return problem.oracle(case, given)
        if place not in oracles:
            made = problem.oracle(case, given)
            oracles[place] = {name: _kept(expectation) for name, expectation in made.items()}
        return oracles[place]

    return replace(problem, inputs=inputs_of, oracle=oracle_of)


def _kept(expectation: Expectation) -> Expectation:
    """``expectation`` with read-only arrays, whose other candidates are computed once."""
    return Expectation(
        _read_only(expectation.candidates),
        expectation.finite_only,
        cache(lambda: _read_only(expectation.others())),
    )


def _read_only(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    for candidate in candidates:
        candidate.expected.flags.writeable = False
        candidate.allowed.flags.writeable = False
    return candidates
