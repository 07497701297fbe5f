"""RMSNorm over the last axis in Triton, forward (problem 1) and backward (problem 2).

HANDOUT.md says what each must compute. In place of its launchers the grader calls the two functions at the
end. Their arrays are tensors on the device: x.shape is [rows, hidden], and x.dtype is float32, float16 or
bfloat16. Kernels do all the work, on memory that torch.empty(..., device=x.device) can add to. A function
that is not written yet costs its own problem alone. The module (problem 3) calls launchers in CUDA.
"""

import triton
import triton.language as tl


@triton.jit
def ker_rms_norm(y, rstd, x, weight, epsilon, hidden, wide: tl.constexpr):
    """One program per row; ``wide`` is a power of two, and at least ``hidden``."""
    # YOUR CODE HERE (rmsnorm_forward)
    # 1. column = tl.arange(0, wide) and a mask of those that the row has.
    # 2. The sum of squares of the row, in float32.
    # 3. rstd, and the row times rstd, rounded to x.dtype.element_ty, times the weight.


@triton.jit
def ker_rms_bw(dx, parts, dy, x, weight, rstd, rows, hidden, wide: tl.constexpr):
    """Gradient of x, row by row, and what these rows add to the gradient of the weight."""
    # YOUR CODE HERE (rmsnorm_backward)


def rmsnorm_forward(y, rstd, x, weight, epsilon):
    """Write y and rstd; ``epsilon`` is a number."""
    # YOUR CODE HERE: rows, hidden = x.shape, then ker_rms_norm[(rows,)](...)
    raise NotImplementedError


def rmsnorm_backward(dx, dweight, dy, x, weight, rstd):
    """Write dx and dweight."""
    # YOUR CODE HERE
    raise NotImplementedError
