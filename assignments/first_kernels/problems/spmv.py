"""Sparse matrix times vector: only what is not zero is stored, row after row (CSR)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from grader.problems.contents import NORMAL, indices, offsets, real
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from torch import Tensor


def spmv(values: Tensor, columns: Tensor, starts: Tensor, x: Tensor) -> Tensor:
    """Row r is the sum of values[k] x[columns[k]] from k = starts[r] to starts[r + 1]."""
    return torch.segment_reduce(values * x[columns], "sum", offsets=starts, unsafe=True)


PROBLEM = problem(
    id="spmv",
    file="spmv.cu",
    launcher="launch_spmv(float* y, const float* values, const int* columns, const int* starts, "
    "const float* x, int rows, int width, int entries, cudaStream_t stream)",
    formula=spmv,
    inputs=lambda rows, width, entries: {
        "values": real(entries),
        "columns": indices(width, entries),
        "starts": offsets(entries, rows),
        "x": real(width),
    },
    sizes={"rows": Range(1, 1 << 21), "width": Range(1, 1 << 21), "entries": Range(1, 1 << 24)},
    cases=[("large sizes", {"rows": 300, "width": 200, "entries": 30_000}, NORMAL)],
    timing=(
        {"rows": 1 << 18, "width": 1 << 18, "entries": 1 << 22},
        {"rows": 1 << 16, "width": 1 << 16, "entries": 1 << 22},
    ),
)
