"""Matrix multiplication in float32: C = A B."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Inputs


TILES = (4, 8, 16, 32, 64, 128)  # of k


def _without_rest(data: Inputs, *, tile: int) -> Mapping[str, NDArray[np.float64]]:
    """C of whole tiles of k."""
    a, b = data.wide("a"), data.wide("b")
    whole = len(b) // tile * tile
    return {"c": a[:, :whole] @ b[:whole]}


def _with_stride_n(data: Inputs) -> Mapping[str, NDArray[np.float64]]:
    """C where row i of A begins at element i n, as far as that is inside."""
    a, b = data.wide("a"), data.wide("b")
    (m, k), n = a.shape, b.shape[1]
    index = np.arange(m)[:, None] * n + np.arange(k)
    return {"c": a.ravel()[np.minimum(index, a.size - 1)] @ b}


PROBLEM = replace(
    problem(
        id="matmul",
        file="matmul.cu",
        launcher="launch_matmul(float* c, const float* a, const float* b, int m, int n, int k, "
        "cudaStream_t stream)",
        formula=lambda a, b: a @ b,
        inputs=lambda m, n, k: {"a": real(m, k), "b": real(k, n)},
        sizes={"m": Range(1, 1 << 21), "n": Range(1, 1 << 21), "k": Range(1, 1 << 14)},
        cases=[("large sizes", {"m": 150, "n": 200, "k": 100}, NORMAL)],  # several tiles in every direction
        timing=({"m": 512, "n": 512, "k": 512}, {"m": 2048, "n": 2048, "k": 2048}),
    ),
    bugs={
        **{
            f"the part of k behind the last multiple of {tile} is left out: round the number of tiles up": (
                partial(_without_rest, tile=tile)
            )
            for tile in TILES
        },
        "A is read with n as the length of its rows, which is k": _with_stride_n,
    },
)
