"""Matrix multiplication in float32: C = A B. HANDOUT.md says what to compute."""

import triton
import triton.language as tl


@triton.jit
def ker_matmul(c, a, b, m, n, k, tall: tl.constexpr, wide: tl.constexpr, step: tl.constexpr):
    """A program for a tile of C, ``tall`` x ``wide``."""
    # YOUR CODE HERE
    # 1. The rows and columns of this program's tile of C.
    # 2. Along k, step by step: a tile of A and one of B, zeros where they end, and tl.dot of the two. Its
    #    input_precision must be "ieee": TF32, which it takes if you say nothing, is wrong here.
    # 3. The elements of C that there are.


def matmul(c, a, b):
    """Write c."""
    # YOUR CODE HERE: sizes are those of the tensors; tl.dot wants tiles of 16 or more in each direction.
    raise NotImplementedError
