"""Which cases are most like those that are timed: hints on speed come from them alone."""

from __future__ import annotations

from math import log2
from typing import TYPE_CHECKING

from grader.problems.grid import MAGNITUDES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.problems.problem import Case


ALIGNED = 16  # as Triton compiles for such sizes apart


def typical(cases: Sequence[Case], timed: Sequence[Case]) -> frozenset[str]:
    """The names of ``cases`` that are closest to one of ``timed``; of all where none can be compared.

    Most cases have sizes that break kernels, and what is slow there may be fast at those that are timed.
    Sizes count by their ratios, and another element type or function as much as twice the size. Many kernels
    read several elements at once where a size allows it: one that is a multiple of ``ALIGNED`` is as far from
    one that is not as from four times the size. Cases of the grid of magnitudes are mostly small; they
    count where there are no others.
    """
    by_hand = [case for case in cases if case.group != MAGNITUDES] or cases
    closest = {
        min(by_hand, key=lambda case: _distance(case, shape)).name
        for shape in timed
        if all(case.sizes.keys() == shape.sizes.keys() for case in cases)
    }
    return frozenset(closest or (case.name for case in cases))


def _distance(first: Case, other: Case) -> float:
    pairs = [(size, other.sizes[name]) for name, size in first.sizes.items()]
    doublings = sum(abs(log2((1 + size) / (1 + yours))) for size, yours in pairs)
    unlike = sum((size % ALIGNED == 0) != (yours % ALIGNED == 0) for size, yours in pairs)
    return doublings + 2 * unlike + (first.dtype != other.dtype) + (first.function != other.function)
