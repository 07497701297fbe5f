"""Sorting: integer keys in rising order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.problems.contents import EXTREME, NORMAL, Content, integers
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from grader.problems.contents import Draw

FEW = "few different keys"


def some_keys(n: int) -> Content:
    """Any integers; also a few that differ by one."""

    def draws(dtype: str) -> Mapping[str, Draw]:
        return {
            **integers(-(2**31), 2**31 - 1, n).draws(dtype),
            FEW: lambda random, shape: random.integers(-3, 4, shape),
        }

    return Content((n,), draws)


def sort(keys: Tensor) -> Tensor:
    """Sort the keys, the smallest first."""
    return keys.sort().values


PROBLEM = problem(
    id="sort",
    file="sort.cu",
    launcher="launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream)",
    formula=sort,
    inputs=lambda n: {"keys": some_keys(n)},
    sizes={"n": Range(1, 1 << 20)},
    cases=[
        ("large sizes", {"n": 20_000}, NORMAL),
        ("large sizes", {"n": 100_003}, NORMAL),
        ("beyond a million", {"n": (1 << 20) + 3001}, NORMAL),  # more than one round of a large grid
        (EXTREME, {"n": 50_001}, EXTREME),
    ],
    timing=({"n": 1 << 20}, {"n": 1 << 24}),
)
