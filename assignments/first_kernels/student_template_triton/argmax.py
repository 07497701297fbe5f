"""The place of the largest number of a vector. HANDOUT.md says what to compute."""

import triton
import triton.language as tl


@triton.jit
def ker_best(numbers, places, x, n, size: tl.constexpr):
    """Some programs, which leave a number and its place each."""
    # YOUR CODE HERE: as for the sum, with two tiles. What do elements behind the end begin with? Which place
    # counts where a number is there twice?


def argmax(place, x):
    """Write place[0], an int32."""
    # YOUR CODE HERE: numbers and places of programs are torch.empty(..., dtype=..., device=x.device).
    raise NotImplementedError
