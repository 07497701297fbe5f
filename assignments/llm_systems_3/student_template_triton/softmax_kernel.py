"""Softmax over the keys of attention in Triton, forward (problem 1) and backward (problem 2), in place.

ASSIGNMENT.md says what each must compute. In place of its launchers the grader calls the two functions at the
end. Their arrays are float32 tensors on the device, and there are no streams to choose. Kernels do all the
work, on memory that torch.empty(..., device=inp.device) can add to. A function that is not written yet costs
its own problem alone. The transformer (problem 5) calls launchers in CUDA.
"""

import triton
import triton.language as tl


@triton.jit
def ker_attn_softmax(
    inp, attn_mask, queries, keys, per_batch, masked: tl.constexpr, future: tl.constexpr, wide: tl.constexpr
):
    """One program per row of keys; ``wide`` is a power of two, and at least ``keys``."""
    # YOUR CODE HERE (softmax_forward)
    # 1. key = tl.arange(0, wide) and a mask of those that the row has and shows.
    # 2. The row, minus infinity where it is hidden, plus attn_mask of its batch entry where there is one.
    # 3. The largest of it, the exponentials, their sum, the quotient. What if all keys are hidden?


@triton.jit
def ker_attn_softmax_bw(out_grad, soft_inp, keys, wide: tl.constexpr):
    """One program per row."""
    # YOUR CODE HERE (softmax_backward)


def softmax_forward(inp, attn_mask, mask_future):
    """Put the weights in the place of ``inp``; ``attn_mask`` may be None, ``mask_future`` is 0 or 1."""
    # YOUR CODE HERE: batch, heads, queries, keys = inp.shape, then ker_attn_softmax[(rows,)](...)
    raise NotImplementedError


def softmax_backward(out_grad, soft_inp):
    """Put the gradient of the logits in the place of ``out_grad``."""
    # YOUR CODE HERE
    raise NotImplementedError
