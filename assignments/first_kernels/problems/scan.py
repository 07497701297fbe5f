"""Inclusive scan: each element becomes the sum of all up to its own place."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.contents import NORMAL, Content, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Inputs


MARK = "sums of which all bytes are alike"
BYTES = b"\x7f\x3f\xfe\xcd"  # with which memory is filled to mark what is not there yet


def numbers(n: int) -> Content:
    """``real`` numbers; also one of bytes that are all alike, and zeros behind it."""

    def mark(_random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.floating]:
        drawn = np.zeros(shape, np.float32)
        drawn[0] = np.frombuffer(BYTES[n % 4 : n % 4 + 1] * 4, np.float32)[0]
        return drawn

    return real(n).also(MARK, mark)


SIZES = (32, 64, 128, 256, 512, 1024, 2048)  # of tiles


def _one_tile_before(data: Inputs, *, size: int) -> Mapping[str, NDArray[np.float64]]:
    """Sums of an element's tile and of the one before."""
    x = data.wide("x")
    sums = np.cumsum(x)
    tile = np.arange(len(x)) // size - 1
    return {"sums": sums - np.where(tile > 0, sums[np.maximum(tile * size - 1, 0)], 0.0)}


PROBLEM = replace(
    problem(
        id="scan",
        file="scan.cu",
        launcher="launch_scan(float* sums, const float* x, int n, cudaStream_t stream)",
        formula=lambda x: x.cumsum(0),
        inputs=lambda n: {"x": numbers(n)},
        sizes={"n": Range(1, 1 << 26)},
        cases=[
            ("large sizes", {"n": 150_001}, NORMAL),  # many tiles, in every order of blocks
            *((MARK, {"n": n}, MARK) for n in range(5000, 5004)),
        ],
        budget=Budget(pairs=1 << 18, alone=1 << 20),
        timing=({"n": 1 << 22}, {"n": 1 << 26}),
    ),
    bugs={
        f"only the tile of {size} elements before is added, not all before: add up the tiles' sums": (
            partial(_one_tile_before, size=size)
        )
        for size in SIZES
    },
)
