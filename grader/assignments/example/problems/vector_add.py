"""One module for each problem of assignment.toml, with the same name; it defines ``PROBLEM``.

Say here what is asked for, as one function of PyTorch, and which sizes there are. Cases, what is right, how
far off a right kernel may be and the baseline follow; each can be replaced (docs/write_an_assignment.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.problems.contents import real
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from torch import Tensor


def add_scaled(x: Tensor, y: Tensor, a: float) -> Tensor:
    """Compute the output from arrays, scalars and sizes by name; here it is exact in float64."""
    return a * x + y


PROBLEM = problem(
    id="vector_add",
    file="vector_add.cu",
    launcher="launch_vector_add(float* z, const float* x, const float* y, float a, int n, "
    "cudaStream_t stream)",
    formula=add_scaled,
    inputs=lambda n: {"x": real(n), "y": real(n), "a": 1.7},
    sizes={"n": Range(1, 1 << 25)},
    timing=({"n": 1 << 16}, {"n": 1 << 25}),
)
