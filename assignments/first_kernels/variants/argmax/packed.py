"""Number and place in one integer of 64 bits, in the order of the answer: the rest is an atomic maximum."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker_most(most, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    number = tl.load(x + at, mask=at < n, other=float("-inf")) + 0.0  # -0 becomes 0: they are equal
    bits = number.to(tl.int32, bitcast=True)
    rising = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    packed = (rising.to(tl.int64) << 32) | (0x7FFFFFFF - at).to(tl.int64)
    tl.atomic_max(most, tl.max(packed, axis=0))


@triton.jit
def ker_begin(most):
    tl.store(most, -0x7FFFFFFFFFFFFFFF)


@triton.jit
def ker_place(place, most):
    tl.store(place, 0x7FFFFFFF - tl.load(most).to(tl.int32))


def argmax(place, x):
    n = x.shape[0]
    most = torch.empty((1,), dtype=torch.int64, device=x.device)
    ker_begin[(1,)](most)
    ker_most[(triton.cdiv(n, 1024),)](most, x, n, 1024)
    ker_place[(1,)](place, most)
