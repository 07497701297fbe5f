"""Sorting: integer keys in rising order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.contents import EXTREME, NORMAL, Content, integers
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.contents import Draw

FEW, NARROW, PIECES = "few different keys", "keys around a power of two", "pieces in order"


def some_keys(n: int) -> Content:
    """Any integers; also a few that differ by one, or on both sides of where their high bits change.

    Or pieces of a power of two of keys, of which each is in order, and which lie in any order.
    """

    def narrow(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.integer]:
        border = int(random.integers(-100, 100)) << int(random.integers(8, 25))
        return border + random.integers(-200, 200, shape)

    def in_pieces(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.integer]:
        keys = np.sort(random.integers(-(2**31), 2**31 - 1, shape, endpoint=True))
        length = 1 << int(random.integers(4, max(5, keys.size.bit_length() - 1)))
        pieces = [keys[begin : begin + length] for begin in range(0, keys.size, length)]
        return np.concatenate([pieces[index] for index in random.permutation(len(pieces))])

    def draws(dtype: str) -> Mapping[str, Draw]:
        return {
            **any_keys.draws(dtype),
            FEW: lambda random, shape: random.integers(-3, 4, shape),
            NARROW: narrow,
            PIECES: in_pieces,
        }

    any_keys = integers(-(2**31), 2**31 - 1, n)
    return replace(any_keys, draws=draws)


def sort(keys: Tensor) -> Tensor:
    """Sort the keys, the smallest first."""
    return keys.sort().values


PROBLEM = problem(
    id="sort",
    file="sort.cu",
    launcher="launch_sort(int* sorted, const int* keys, int n, cudaStream_t stream)",
    formula=sort,
    inputs=lambda n: {"keys": some_keys(n)},
    sizes={"n": Range(1, 1 << 20, end=1 << 26)},
    cases=[
        ("large sizes", {"n": 20_000}, NORMAL),
        ("large sizes", {"n": 100_003}, NORMAL),
        ("beyond a million", {"n": (1 << 20) + 3001}, NORMAL),  # more than one round of a large grid
        (EXTREME, {"n": 50_001}, EXTREME),
        *((PIECES, {"n": size}, PIECES) for size in (10_007, 50_001, 80_021)),
    ],
    timing=({"n": 1 << 20}, {"n": 1 << 24}),
)
