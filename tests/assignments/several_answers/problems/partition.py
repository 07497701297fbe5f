"""The numbers below a pivot in front, in any order; how many there are; what is behind them is free."""

import numpy as np

from grader.problems.checking import Wrong
from grader.problems.contents import Number, integers
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    x, y, count = inputs.arrays["x"], outputs["y"], int(outputs["count"][0])
    small = np.sort(x[x < inputs.scalars["pivot"]])
    if count != small.size:
        return Wrong(f"{small.size:,} numbers are below the pivot", "count")
    outside = np.arange(y.size) < count
    outside &= ~np.isin(y, small)
    if outside.any():
        return Wrong("a number in front is not below the pivot, or not in x", "y", outside)
    return "" if np.array_equal(np.sort(y[:count]), small) else "a number in front is there too often"


PROBLEM = problem(
    id="partition",
    file="partition.cu",
    launcher="launch_partition(int* y, int* count, const int* x, int pivot, int n, cudaStream_t stream)",
    check=check,
    inputs=lambda n: {"x": integers(-1000, 1000, n), "pivot": Number(0, -1000, 1001)},
    outputs=lambda n: {"y": (n,), "count": (1,)},
    sizes={"n": Range(1, 4096)},
)
