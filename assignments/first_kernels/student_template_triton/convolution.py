"""2-D convolution with zeros around the image. HANDOUT.md says what to compute."""

import triton
import triton.language as tl


@triton.jit
def ker_convolution(
    out, image, weights, rows, columns, radius: tl.constexpr, tall: tl.constexpr, wide: tl.constexpr
):
    """A program for a tile of ``out``."""
    # YOUR CODE HERE
    # 1. The rows and columns of this program's tile.
    # 2. For each weight (tl.static_range): the pixels that it meets, zeros outside of the image.
    # 3. The weighted sum of each pixel, for those inside the image.


def convolution(out, image, weights, radius):
    """Write out; ``radius`` is a number."""
    # YOUR CODE HERE
    raise NotImplementedError
