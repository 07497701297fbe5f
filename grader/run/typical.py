"""Which cases are most like those that are timed: hints on speed come from them alone."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.problems.problem import Case


def typical(cases: Sequence[Case], timed: Sequence[Case]) -> frozenset[str]:
    """The names of ``cases`` that are closest to one of ``timed``; of all where none can be compared.

    Most cases have sizes that break kernels, and what is slow there may be fast at those that are timed.
    Sizes count by their ratios, and another element type or function as much as twice the size.
    """
    closest = {
        min(cases, key=lambda case: _distance(case, one)).name
        for one in timed
        if all(case.sizes.keys() == one.sizes.keys() for case in cases)
    }
    return frozenset(closest or (case.name for case in cases))


def _distance(one: Case, other: Case) -> float:
    doublings = (abs(log2((1 + size) / (1 + other.sizes[name]))) for name, size in one.sizes.items())
    return sum(doublings) + (one.dtype != other.dtype) + (one.function != other.function)
