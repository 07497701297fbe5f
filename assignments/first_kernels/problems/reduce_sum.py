"""Reduction: the sum of a vector."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from grader.problems.problem import Inputs


SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)  # of blocks


def _without_rest(data: Inputs, *, size: int) -> Mapping[str, NDArray[np.float64]]:
    """The sum of whole blocks."""
    x = data.wide("x")
    return {"total": x[: max(len(x) // size, 1) * size].sum(keepdims=True)}


def _first_twice(data: Inputs) -> Mapping[str, NDArray[np.float64]]:
    x = data.wide("x")
    return {"total": (x.sum() + x[0]).reshape(1)}


PROBLEM = replace(
    problem(
        id="reduce_sum",
        file="reduce_sum.cu",
        launcher="launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream)",
        formula=lambda x: x.sum(0, keepdim=True),
        inputs=lambda n: {"x": real(n)},
        sizes={"n": Range(1, 1 << 26)},
        cases=[("beyond a million", {"n": 3 * (1 << 20) + 5}, NORMAL)],  # more than one round of a large grid
        budget=Budget(pairs=1 << 18, alone=1 << 20),
        timing=({"n": 1 << 22}, {"n": 1 << 26}),
    ),
    bugs={
        **{
            f"what is behind the last multiple of {size} is left out: round the blocks up": partial(
                _without_rest, size=size
            )
            for size in SIZES
        },
        "the first element counts twice: does a sum begin with it, and is it added as well?": _first_twice,
    },
)
