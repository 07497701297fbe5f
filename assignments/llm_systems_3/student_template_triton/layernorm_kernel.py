"""LayerNorm over the last axis in Triton, forward (problem 3) and backward (problem 4).

ASSIGNMENT.md says what each must compute. In place of its launchers the grader calls the two functions at the
end. Their arrays are float32 tensors on the device, and there are no streams to choose. Kernels do all the
work, on memory that torch.empty(..., device=inp.device) can add to. A function that is not written yet costs
its own problem alone. The transformer (problem 5) calls launchers in CUDA.
"""

import triton
import triton.language as tl

EPSILON = tl.constexpr(1e-8)


@triton.jit
def ker_layer_norm(ln_res, vars, means, inp, scale, bias, hidden, wide: tl.constexpr):
    """One program per row; ``wide`` is a power of two, and at least ``hidden``."""
    # YOUR CODE HERE (layernorm_forward)
    # 1. column = tl.arange(0, wide) and a mask of those that the row has.
    # 2. The mean, then the variance of what is left without it. What do the masked columns add to it?
    # 3. Normalise, scale, shift.


@triton.jit
def ker_ln_bw_dinp(inp_grad, out_grad, inp, gamma, vars, means, hidden, wide: tl.constexpr):
    """Gradient of the input. One program per row."""
    # YOUR CODE HERE (layernorm_backward)


@triton.jit
def ker_ln_bw_dgamma_dbetta(
    gamma_grad, betta_grad, out_grad, inp, vars, means, rows, hidden, tall: tl.constexpr, wide: tl.constexpr,
):  # fmt: skip
    """Gradients of scale and bias. A program owns ``wide`` columns, and goes down the rows in tiles."""
    # YOUR CODE HERE (layernorm_backward)


def layernorm_forward(ln_res, vars, means, inp, scale, bias):
    """Write ln_res, vars and means."""
    # YOUR CODE HERE: rows, hidden = inp.shape, then ker_layer_norm[(rows,)](...)
    raise NotImplementedError


def layernorm_backward(gamma_grad, betta_grad, inp_grad, out_grad, inp, gamma, vars, means):
    """Write the three gradients."""
    # YOUR CODE HERE
    raise NotImplementedError
