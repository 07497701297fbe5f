"""2-D convolution: each pixel becomes a weighted sum of those around it; outside of the image is zero."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn.functional import conv2d

from grader.problems.contents import NORMAL, real
from grader.problems.distributions import STREAMS
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from torch import Tensor


def convolution(image: Tensor, weights: Tensor, radius: int) -> Tensor:
    """Convolve as PyTorch does: the filter is not mirrored, and ``radius`` zeros are on each side."""
    return conv2d(image[None, None], weights[None, None], padding=radius)[0, 0]


PROBLEM = problem(
    id="convolution",
    file="convolution.cu",
    launcher="launch_convolution(float* out, const float* image, const float* weights, int rows, "
    "int columns, int radius, cudaStream_t stream)",
    formula=convolution,
    inputs=lambda rows, columns, radius: {
        "image": real(rows, columns),
        "weights": real(2 * radius + 1, 2 * radius + 1),
    },
    sizes={"rows": Range(1, 1 << 13), "columns": Range(1, 1 << 13), "radius": Range(1, 3)},
    cases=[(STREAMS, {"rows": 70, "columns": 130, "radius": radius}, NORMAL) for radius in (1, 2)],
    timing=tuple({"rows": 2048, "columns": 2048, "radius": radius} for radius in (1, 3)),
)
