"""5-point stencil: heat spreads over a plate whose border stays as it is, for several steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.problems.contents import NORMAL, Number, real
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from torch import Tensor


def stencil(before: Tensor, rate: float, steps: int) -> Tensor:
    """``steps`` times: u + rate (north + south + west + east - 4 u), inside the border."""
    plate = before
    for _ in range(steps):
        middle = plate[1:-1, 1:-1]
        around = plate[:-2, 1:-1] + plate[2:, 1:-1] + plate[1:-1, :-2] + plate[1:-1, 2:]
        plate = plate.clone()
        plate[1:-1, 1:-1] = middle + rate * (around - 4 * middle)
    return plate


PROBLEM = problem(
    id="stencil",
    file="stencil.cu",
    launcher="launch_stencil(float* after, const float* before, float rate, int rows, int columns, "
    "int steps, cudaStream_t stream)",
    formula=stencil,
    inputs=lambda rows, columns: {"before": real(rows, columns), "rate": Number(0.2, -0.5, 1.5)},
    sizes={"rows": Range(1, 1 << 13), "columns": Range(1, 1 << 13), "steps": Range(1, 8)},
    cases=[
        ("small sizes", {"rows": 3, "columns": 3, "steps": 2}, NORMAL),  # one cell inside
        *(("several steps", {"rows": 70, "columns": 130, "steps": steps}, NORMAL) for steps in range(1, 9)),
    ],
    timing=({"rows": 2048, "columns": 2048, "steps": 1}, {"rows": 2048, "columns": 2048, "steps": 4}),
)
