"""The places of the k largest numbers of each row, in any order; of equal numbers any may be taken."""

import numpy as np

from grader.problems.checking import Wrong
from grader.problems.contents import real
from grader.problems.formula import Range, problem


def check(case, inputs, outputs):
    x, index, k = inputs.arrays["x"], outputs["index"], case.sizes["k"]
    outside = (index < 0) | (index >= case.sizes["n"])
    if outside.any():
        return Wrong("an index lies outside of its row", "index", outside)
    if (np.diff(np.sort(index, 1)) == 0).any():
        return "an index is there twice in a row"
    taken, largest = np.sort(np.take_along_axis(x, index, 1), 1), np.sort(x, 1)[:, -k:]
    left_out = (taken != largest).any(1, keepdims=True)
    return Wrong("a larger number of the row is left out", "index", left_out.repeat(k, 1))


PROBLEM = problem(
    id="top_k",
    file="top_k.cu",
    launcher="launch_top_k(int* index, const float* x, int rows, int n, int k, cudaStream_t stream)",
    check=check,
    inputs=lambda rows, n: {"x": real(rows, n)},
    outputs=lambda rows, k: {"index": (rows, k)},
    sizes={"rows": Range(1, 16), "n": Range(1, 512), "k": Range(1, 64, at_most="n")},
)
