"""Causal attention, one head: each query takes the values of the keys up to its own place, by softmax."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from grader.problems.contents import EQUAL, HUGE, LARGE, real, scores
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from torch import Tensor

DEPTH = 64  # numbers of a query, a key and a value


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Softmax of q k^T / sqrt(DEPTH), in which key j > query i is hidden, times v."""
    hidden = torch.ones(len(q), len(k), dtype=torch.bool).triu(1)
    logits = (q @ k.t() / math.sqrt(DEPTH)).masked_fill(hidden, -math.inf)
    return torch.softmax(logits, -1) @ v


PROBLEM = problem(
    id="attention",
    file="attention.cu",
    launcher="launch_attention(float* out, const float* q, const float* k, const float* v, int n, "
    "cudaStream_t stream)",
    formula=attention,
    inputs=lambda n: {
        "q": scores(n, DEPTH, large=30.0),
        "k": real(n, DEPTH),
        "v": real(n, DEPTH),
    },
    sizes={"n": Range(1, 1 << 14)},
    timing=({"n": 1024}, {"n": 2048}),
    cases=[(name, {"n": 200}, name) for name in (LARGE, EQUAL, HUGE)],
    most=4 * DEPTH * 300,  # there are n x n logits, too
)
