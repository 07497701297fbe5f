"""The vector of length 1 of the largest eigenvalue of a positive definite matrix, of either sign."""

import numpy as np

from grader.problems.contents import together
from grader.problems.formula import Range, problem


def inputs(n):
    def matrix(random):
        basis = np.linalg.qr(random.standard_normal((n, n)))[0]
        values = np.append(random.uniform(0.1, 1, n - 1), 4)  # so that each step of a power iteration helps
        return {"a": (basis * values) @ basis.T}

    return together({"normal": matrix}, a=(n, n))


def check(case, inputs, outputs):
    right = np.linalg.eigh(inputs.arrays["a"].astype(float))[1][:, -1]
    off = min(np.abs(outputs["v"] - sign * right).max() for sign in (1, -1))
    return "" if off <= 1e-5 else f"v is not the vector of the largest eigenvalue: it is off by {off:.2g}"


PROBLEM = problem(
    id="eigenvector",
    file="eigenvector.cu",
    launcher="launch_eigenvector(float* v, float* work, const float* a, int n, cudaStream_t stream)",
    check=check,
    inputs=inputs,
    outputs=lambda n: {"v": (n,), "work": (n,)},
    free=["work"],
    sizes={"n": Range(1, 100)},
)
