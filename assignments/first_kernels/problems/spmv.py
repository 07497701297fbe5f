"""Sparse matrix times vector: only what is not zero is stored, row after row (CSR)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from grader.problems.contents import NORMAL, indices, offsets, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Inputs, Slices

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor


def spmv(values: Tensor, columns: Tensor, starts: Tensor, x: Tensor) -> Tensor:
    """Row r is the sum of values[k] x[columns[k]] from k = starts[r] to starts[r + 1]."""
    return torch.segment_reduce(values * x[columns], "sum", offsets=starts, unsafe=True)


def some_rows(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """Consecutive rows alone, with their entries."""
    values, columns, starts = (data.arrays[name] for name in ("values", "columns", "starts"))
    assert values is not None
    assert columns is not None
    assert starts is not None
    bounds = starts[index[0] : index[-1] + 2]
    entries = slice(bounds[0], bounds[-1])
    arrays = {"values": values[entries], "columns": columns[entries], "starts": bounds - bounds[0]}
    sizes = {"rows": index.size, "entries": int(bounds[-1] - bounds[0])}
    return Inputs({**data.arrays, **arrays}, {"y": index.shape}, {**data.scalars, **sizes})


FORMULA = problem(
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
PROBLEM = replace(FORMULA, slices=(Slices(("y",), lambda case: case.sizes["rows"], some_rows),))
