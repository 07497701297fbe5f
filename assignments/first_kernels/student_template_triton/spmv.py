"""Sparse matrix (CSR) times vector. HANDOUT.md says what to compute."""

import triton
import triton.language as tl


@triton.jit
def ker_spmv(y, values, columns, starts, x, rows, tall: tl.constexpr, lanes: tl.constexpr):
    """A program for ``tall`` rows, each with ``lanes`` entries at a time."""
    # YOUR CODE HERE
    # 1. Where the rows of this program begin and end; tl.max says how long the longest one is.
    # 2. For each step of ``lanes`` entries: values[k] * x[columns[k]], with a mask where a row has ended.
    # 3. The sum of each row, also 0 of an empty one, written once.


def spmv(y, values, columns, starts, x):
    """Write y."""
    # YOUR CODE HERE: y.shape[0] is the number of rows, values.shape[0] that of all entries.
    raise NotImplementedError
