"""Matrix transpose: rows become columns."""

from __future__ import annotations

from grader.problems.contents import real
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="transpose",
    file="transpose.cu",
    launcher="launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream)",
    formula=lambda matrix: matrix.t().contiguous(),
    inputs=lambda rows, columns: {"matrix": real(rows, columns)},
    sizes={"rows": Range(1, 1 << 21), "columns": Range(1, 1 << 21)},
    timing=({"rows": 2048, "columns": 2048}, {"rows": 8192, "columns": 8192}),
)
