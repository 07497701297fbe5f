"""Matrix multiplication of half precision, C = A B, added up in float32 and rounded once."""

from __future__ import annotations

from grader.problems.contents import NORMAL, real
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="matmul_half",
    file="matmul_half.cu",
    launcher="launch_matmul_half(__half* c, const __half* a, const __half* b, int m, int n, int k, "
    "cudaStream_t stream)",
    formula=lambda a, b: a @ b,
    inputs=lambda m, n, k: {"a": real(m, k), "b": real(k, n)},
    sizes={"m": Range(1, 1 << 21), "n": Range(1, 1 << 21), "k": Range(1, 1 << 14)},
    cases=[("large sizes", {"m": 150, "n": 200, "k": 100}, NORMAL)],  # several tiles in every direction
    timing=({"m": 512, "n": 512, "k": 512}, {"m": 2048, "n": 2048, "k": 2048}),
)
