"""The cases of a problem without those of its grid, for tests that are about something else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.problems.grid import MAGNITUDES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.problems.problem import Case, KernelProblem


def by_hand(cases: Iterable[Case]) -> tuple[Case, ...]:
    return tuple(case for case in cases if case.group != MAGNITUDES)


def without_grid(problem: KernelProblem) -> KernelProblem:
    groups = tuple(group for group in problem.groups if group != MAGNITUDES)
    return replace(problem, cases=lambda seed: by_hand(problem.cases(seed)), groups=groups)
