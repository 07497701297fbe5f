"""out = x + y + shift, element by element."""

import triton
import triton.language as tl


@triton.jit
def ker_shifted_sum(out, x, y, shift, n, size: tl.constexpr):
    # Write the kernel.
    pass


def custom_kernel(data):
    """Fill ``out`` of the tuple (x, y, shift, out): a number, and three vectors of float32."""
    raise NotImplementedError
