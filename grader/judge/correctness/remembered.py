"""A cache of inputs and oracles of cases, for submissions that are judged on the same seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.problems.problem import Case, Expectation, Inputs, Problem


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
            for expectation in made.values():
                for candidate in expectation.candidates:
                    candidate.expected.flags.writeable = False
                    candidate.allowed.flags.writeable = False
            oracles[place] = made
        return oracles[place]

    return replace(problem, inputs=inputs_of, oracle=oracle_of)
