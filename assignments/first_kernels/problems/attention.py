"""Causal attention, one head: each query takes the values of the keys up to its own place, by softmax."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.problems.contents import EQUAL, HUGE, LARGE, Content, real, scores
from grader.problems.formula import Range, problem
from grader.problems.problem import Inputs, Slices

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor


DEPTH = 64  # numbers of a query, a key and a value
LATE = "large logits come late"


def attention(q: Tensor, k: Tensor, v: Tensor, first: int = 0) -> Tensor:
    """Softmax of q k^T / sqrt(DEPTH), in which key j > query ``first`` + i is hidden, times v."""
    hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(first + 1)
    logits = (q @ k.t() / math.sqrt(DEPTH)).masked_fill(hidden, -math.inf)
    return torch.softmax(logits, -1) @ v


def keys(n: int) -> Content:
    """``real`` keys; also ones that are equal from some place on, with logits of many sizes, most large."""

    def late(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.floating]:
        behind = np.arange(n) > random.integers(n // 8, max(2, n // 4))
        return np.where(behind[:, None], 80 * random.standard_normal(DEPTH), random.standard_normal(shape))

    return real(n, DEPTH).also(LATE, late)


def values(n: int) -> Content:
    """``real`` values; where large logits come late, large ones: products with large powers overflow."""

    def large(random: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.floating]:
        return 1e5 * random.standard_normal(shape)

    return real(n, DEPTH).also(LATE, large)


def some_queries(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Consecutive queries alone, with the keys and values that they see."""
    ends = {"q": slice(index[0], index[-1] + 1), "k": slice(index[-1] + 1), "v": slice(index[-1] + 1)}
    arrays = {name: array if array is None else array[ends[name]] for name, array in data.arrays.items()}
    return Inputs(arrays, {"out": (index.size, DEPTH)}, {**data.scalars, "first": int(index[0])})


FORMULA = problem(
    id="attention",
    file="attention.cu",
    launcher="launch_attention(float* out, const float* q, const float* k, const float* v, int n, "
    "cudaStream_t stream)",
    formula=attention,
    inputs=lambda n: {
        "q": scores(n, DEPTH, large=30.0),
        "k": keys(n),
        "v": values(n),
    },
    sizes={"n": Range(1, 1 << 14)},
    timing=({"n": 1024}, {"n": 2048}),
    cases=[*((name, {"n": 200}, name) for name in (LARGE, EQUAL, HUGE)), (LATE, {"n": 1200}, LATE)],
    most=4 * DEPTH * 300,  # there are n x n logits, too
)
PROBLEM = replace(FORMULA, slices=(Slices(("out",), lambda case: case.sizes["n"], some_queries),))
