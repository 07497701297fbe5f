"""A softmax of each row of a float32 matrix."""

import triton
import triton.language as tl


@triton.jit
def ker_row_softmax(y, x, columns, size: tl.constexpr):
    # Write the kernel.
    pass


def row_softmax(x):
    """Return a new tensor with the shape of ``x``."""
    raise NotImplementedError
