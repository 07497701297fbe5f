"""Matrix transpose: rows become columns."""

from __future__ import annotations

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

PROBLEM = problem(
    id="transpose",
    file="transpose.cu",
    launcher="launch_transpose(float* out, const float* matrix, int rows, int columns, cudaStream_t stream)",
    formula=lambda matrix: matrix.t().contiguous(),
    inputs=lambda rows, columns: {"matrix": real(rows, columns)},
    sizes={"rows": Range(1, 1 << 21, end=1 << 26), "columns": Range(1, 1 << 21, end=1 << 26)},
    cases=[("beyond a million", {"rows": 1 << 21, "columns": 1}, NORMAL)],  # 65,536 tiles of 32 rows
    budget=Budget(largest=1 << 19),
    timing=({"rows": 2048, "columns": 2048}, {"rows": 8192, "columns": 8192}),
)
