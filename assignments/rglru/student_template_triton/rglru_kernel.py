"""A linear scan and the RG-LRU built on it in Triton (problems 1 to 3).

HANDOUT.md says what each must compute. In place of its launchers the grader calls the three functions at the
end. Their arrays are tensors on the device: x.shape is [batch, length, width], and x.dtype is float32,
float16 or bfloat16; h0 is None where there is no initial state. Kernels do all the work, on memory that
torch.empty(..., device=x.device) can add to. A function that is not written yet costs its own problem alone.
The layer (problem 4) calls launchers in CUDA.
"""

import triton
import triton.language as tl


@triton.jit
def compose(factor, value, next_factor, next_value):
    """Two steps of a scan as one, for tl.associative_scan."""
    # YOUR CODE HERE (linear_scan)


@triton.jit
def ker_linear_scan(
    h, a, b, h0, length, width, started: tl.constexpr, steps: tl.constexpr, channels: tl.constexpr
):
    """A program for some channels of one sequence, which goes through time in tiles [steps, channels]."""
    # YOUR CODE HERE (linear_scan)
    # 1. The state before the first step: h0 if there is one (started), else zeros. In float32.
    # 2. For each tile: load a and b with a mask, combine the steps, add what came before, store h.
    # 3. The state at the end of a tile is where the next one begins.


def linear_scan(h, a, b, h0):
    """Write h."""
    # YOUR CODE HERE
    raise NotImplementedError


def rglru_forward(h, x, gx, ga, c, h0):
    """Write h."""
    # YOUR CODE HERE
    raise NotImplementedError


def rglru_backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0):
    """Write dx, dgx, dga, dc and dh0; h0 may be None, dh0 is asked for anyway."""
    # YOUR CODE HERE
    raise NotImplementedError
