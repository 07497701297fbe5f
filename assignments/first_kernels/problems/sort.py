"""Sorting: integer keys in rising order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.problems.contents import EXTREME, NORMAL, integers
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from torch import Tensor


def sort(keys: Tensor) -> Tensor:
    """The same keys, the smallest first."""
    return keys.sort().values


PROBLEM = problem(
    id="sort",
    file="sort.cu",
    launcher="launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream)",
    formula=sort,
    inputs=lambda n: {"keys": integers(-(2**31), 2**31 - 1, n)},
    sizes={"n": Range(1, 1 << 20)},
    cases=[
        ("large sizes", {"n": 20_000}, NORMAL),
        ("large sizes", {"n": 100_003}, NORMAL),
        (EXTREME, {"n": 50_001}, EXTREME),
    ],
    timing=({"n": 1 << 20}, {"n": 1 << 24}),
)
