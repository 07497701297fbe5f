"""5-point stencil over several steps. HANDOUT.md says what to compute."""

import triton
import triton.language as tl


@triton.jit
def ker_stencil(after, before, rate, rows, columns, tall: tl.constexpr, wide: tl.constexpr):
    """One step of a tile of cells."""
    # YOUR CODE HERE
    # 1. The rows and columns of this program; a mask of those that the plate has.
    # 2. A cell of the border is copied, any other one takes from its four neighbours.


def stencil(after, before, rate, steps):
    """Write after; ``rate`` and ``steps`` are numbers."""
    # YOUR CODE HERE: one launch per step, between two arrays (torch.empty_like), so that the last one writes
    # `after`. Then several steps per launch: tl.gather fetches a tile's elements from other places of it.
    raise NotImplementedError
