"""Histogram: how often each number below ``bins`` occurs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from grader.problems.contents import NORMAL, REPEATED, indices
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

if TYPE_CHECKING:
    from torch import Tensor


def histogram(values: Tensor, bins: int) -> Tensor:
    """``torch.bincount`` with ``bins`` elements."""
    return torch.zeros(bins, dtype=torch.int32).scatter_add(0, values.long(), torch.ones_like(values))


PROBLEM = problem(
    id="histogram",
    file="histogram.cu",
    launcher="launch_histogram(int* counts, const int* values, int n, int bins, cudaStream_t stream)",
    formula=histogram,
    inputs=lambda n, bins: {"values": indices(bins, n)},
    sizes={"n": Range(1, 1 << 26), "bins": Range(1, 4096)},
    cases=[
        ("large sizes", {"n": 50_001, "bins": 4096}, NORMAL),
        ("beyond a million", {"n": 3 * (1 << 20) + 5, "bins": 100}, NORMAL),
        (REPEATED, {"n": 50_001, "bins": 37}, REPEATED),
    ],
    budget=Budget(alone=1 << 20, contents=1 << 23),  # 2^16 of one value in each block
    timing=({"n": 1 << 22, "bins": 256}, {"n": 1 << 26, "bins": 256}, {"n": 1 << 26, "bins": 4096}),
)
