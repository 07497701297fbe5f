"""A softmax of each row of a float32 matrix."""

import cupy as cp
import torch

CUDA = r"""
extern "C" __global__ void ker_row_softmax(float* y, const float* x, int columns) {
  // Write the kernel.
}
"""

kernel = cp.RawKernel(CUDA, "ker_row_softmax")


def row_softmax(x):
    """Return a new tensor with the shape of ``x``."""
    # Launch the kernel: kernel((blocks,), (threads,), (cp.asarray(y), cp.asarray(x), columns))
    raise NotImplementedError
