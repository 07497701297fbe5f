"""Vector addition: z = x + y, element by element."""

from __future__ import annotations

from grader.problems.contents import real
from grader.problems.formula import Range, problem
from grader.problems.problem import Budget

PROBLEM = problem(
    id="vector_add",
    file="vector_add.cu",
    launcher="launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream)",
    formula=lambda x, y: x + y,
    inputs=lambda n: {"x": real(n), "y": real(n)},
    sizes={"n": Range(1, 1 << 26)},
    budget=Budget(pairs=1 << 18, alone=1 << 20),
    timing=({"n": 1 << 22}, {"n": 1 << 26}),
)
