"""Reduction of pairs: the place of the largest number of a vector, the first one if there are several."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.contents import EQUAL, NORMAL, Content, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from grader.problems.contents import Draw, Numbers
    from grader.problems.problem import Inputs

NEGATIVE, FEW, RISING = "negative numbers", "few different numbers", "rising numbers"
INFINITE, NOTHING = "infinite numbers", "nothing but -inf"
LOWEST = "the lowest number and -inf"


def numbers(n: int) -> Content:
    """``real`` numbers; also negative, rising, few different ones, or infinite ones of both signs or one.

    Or the lowest finite number behind some places that hold -inf.
    """

    def lowest(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = np.full(shape, -np.inf)
        numbers[random.integers(n) :] = np.finfo(np.float32).min
        return numbers

    def draws(dtype: str) -> Mapping[str, Draw]:
        return {
            **real(n).draws(dtype),
            NEGATIVE: lambda random, shape: -random.uniform(1, 2, shape),
            FEW: lambda random, shape: random.integers(-3, 0, shape),
            RISING: lambda random, shape: np.sort(random.standard_normal(shape)),
            INFINITE: lambda random, shape: np.where(random.random(shape) < 0.1, np.inf, -np.inf),
            NOTHING: lambda _, shape: np.full(shape, -np.inf),
            LOWEST: lowest,
        }

    return Content((n,), draws)


def _from_zero(data: Inputs) -> Mapping[str, NDArray[np.float64]]:
    """The place where numbers below 0 are none."""
    x = data.wide("x")
    return {"place": np.array([float(x.argmax()) if x.max() > 0 else 0.0])}


PROBLEM = replace(
    problem(
        id="argmax",
        file="argmax.cu",
        launcher="launch_argmax(int* place, const float* x, int n, cudaStream_t stream)",
        formula=lambda x: x.argmax(0, keepdim=True),
        inputs=lambda n: {"x": numbers(n)},
        sizes={"n": Range(1, 1 << 26)},
        cases=[
            *(("beyond a million", {"n": 3 * (1 << 20) + 5}, kind) for kind in (NORMAL, RISING)),
            (EQUAL, {"n": 50_001}, EQUAL),
            (FEW, {"n": 50_001}, FEW),
            *((RISING, {"n": n}, RISING) for n in (256, 257, 512, 513, 1024, 1025)),
        ],
        budget=Budget(pairs=1 << 18, alone=1 << 20),
        timing=({"n": 1 << 22}, {"n": 1 << 26}),
    ),
    bugs={
        "the maximum starts at 0, so that no negative number is larger: begin with -INFINITY": _from_zero,
    },
)
