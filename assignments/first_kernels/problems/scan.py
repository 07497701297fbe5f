"""Inclusive scan: each element becomes the sum of all up to its own place."""

from __future__ import annotations

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

PROBLEM = problem(
    id="scan",
    file="scan.cu",
    launcher="launch_scan(float* sums, const float* x, int n, cudaStream_t stream)",
    formula=lambda x: x.cumsum(0),
    inputs=lambda n: {"x": real(n)},
    sizes={"n": Range(1, 1 << 26)},
    cases=[("large sizes", {"n": 150_001}, NORMAL)],  # many tiles, in every order of blocks
    budget=Budget(pairs=1 << 18, alone=1 << 20),
    timing=({"n": 1 << 22}, {"n": 1 << 26}),
)
