"""Reduction of pairs: the place of the largest number of a vector, the first one if there are several."""

from __future__ import annotations

from grader.problems.contents import real
from grader.problems.formula import Range, problem

PROBLEM = problem(
    id="argmax",
    file="argmax.cu",
    launcher="launch_argmax(int* place, const float* x, int n, cudaStream_t stream)",
    formula=lambda x: x.argmax(0, keepdim=True),
    inputs=lambda n: {"x": real(n)},
    sizes={"n": Range(1, 1 << 26)},
    timing=({"n": 1 << 22}, {"n": 1 << 26}),
)
