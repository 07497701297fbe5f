"""Samples of the exponential distribution, drawn by a generator of the student's own."""

import numpy as np

from grader.problems.checking import Wrong, follows
from grader.problems.contents import Number
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    y, rate = outputs["y"].astype(float), inputs.scalars["rate"]
    doubt = follows(y, lambda x: -np.expm1(-rate * np.maximum(x, 0)))
    doubt = doubt or follows(y[1::2] + y[: y.size // 2 * 2 : 2], lambda x: _of_pairs(rate * np.maximum(x, 0)))
    return Wrong(doubt, "y") if doubt else ""


def _of_pairs(x):
    """The cumulative distribution of the sum of two neighbours, if these do not depend on each other."""
    return -np.expm1(-x) - x * np.exp(-x)


PROBLEM = problem(
    id="samples",
    file="samples.cu",
    launcher="launch_samples(float* y, int seed, float rate, int n, cudaStream_t stream)",
    check=check,
    inputs=lambda: {"seed": Number(1, 0, 1 << 30), "rate": Number(1.5, 0.1, 10)},
    outputs=lambda n: {"y": (n,)},
    sizes={"n": Range(1, 1 << 14)},
)
