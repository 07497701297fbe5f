"""Reduction: the sum of a vector."""

from __future__ import annotations

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

PROBLEM = problem(
    id="reduce_sum",
    file="reduce_sum.cu",
    launcher="launch_reduce_sum(float* total, const float* x, int n, cudaStream_t stream)",
    formula=lambda x: x.sum(0, keepdim=True),
    inputs=lambda n: {"x": real(n)},
    sizes={"n": Range(1, 1 << 26)},
    cases=[("beyond a million", {"n": 3 * (1 << 20) + 5}, NORMAL)],  # more than one round of a large grid
    budget=Budget(pairs=1 << 18, alone=1 << 20),
    timing=({"n": 1 << 22}, {"n": 1 << 26}),
)
