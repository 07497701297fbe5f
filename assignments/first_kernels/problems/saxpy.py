"""SAXPY: y becomes a x + y, in place."""

from __future__ import annotations

from grader.problems.contents import ZEROS, Number, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

PROBLEM = problem(
    id="saxpy",
    file="saxpy.cu",
    launcher="launch_saxpy(float* y, const float* x, float a, int n, cudaStream_t stream)",
    formula=lambda x, y, a: a * x + y,
    inputs=lambda n: {"x": real(n), "y": real(n), "a": Number(2.5, -100, 100)},
    sizes={"n": Range(1, 1 << 26)},
    without=(ZEROS,),  # of which nothing changes: a kernel that does nothing would be right
    budget=Budget(pairs=1 << 18, alone=1 << 20),
    timing=({"n": 1 << 22}, {"n": 1 << 26}),
)
