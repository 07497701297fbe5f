"""Complex signals of several lengths times a window, and the last place of each: a mask fits the lengths."""

import numpy as np
import torch

from grader.problems.contents import real, together
from grader.problems.formula import Range, problem


def inputs(rows, n):
    def padded(random):
        lengths = random.integers(1, n, size=rows, endpoint=True)
        return {"lengths": lengths, "mask": np.arange(n) < lengths[:, None]}

    drawn = together({"normal": padded}, lengths=(rows,), mask=(rows, n))
    return {**drawn, "x": real(rows, n, 2), "window": real(n, 2)}


def windowed(x, window, mask, lengths):
    real_part = x[..., 0] * window[:, 0] - x[..., 1] * window[:, 1]
    imaginary = x[..., 0] * window[:, 1] + x[..., 1] * window[:, 0]
    product = torch.stack([real_part, imaginary], -1)
    return torch.where(mask[..., None], product, 0.0), lengths.long() - 1


PROBLEM = problem(
    id="signals",
    file="signals.cu",
    launcher="launch_signals(cuComplex* y, unsigned short* last, const cuComplex* x, const float2* window, "
    "const bool* mask, const short* lengths, int rows, int n, cudaStream_t stream)",
    formula=windowed,
    inputs=inputs,
    sizes={"rows": Range(1, 40), "n": Range(1, 300)},
)
