"""Softmax forward with a program for each row, and powers of two in place of the exponential."""

import triton
import triton.language as tl

LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def of_a_row(
    inp, mask, queries, keys, per_batch, masked: tl.constexpr, future: tl.constexpr, wide: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    key = tl.arange(0, wide)
    there = key < keys
    last = tl.minimum(keys, row % queries + 1) if future else keys
    logit = tl.load(inp + row * keys + key, mask=key < last, other=float("-inf"))
    if masked:
        logit += tl.load(mask + (row // per_batch) * keys + key, mask=key < last, other=0.0)
    largest = tl.max(logit, axis=0)
    weight = tl.exp2((logit - tl.where(largest == float("-inf"), 0.0, largest)) * LOG2_E)
    total = tl.sum(weight, axis=0) + 1e-8
    tl.store(inp + row * keys + key, weight / total, mask=there)


def softmax_forward(inp, attn_mask, mask_future):
    _batch, heads, queries, keys = inp.shape
    wide = triton.next_power_of_2(keys)
    masked = attn_mask is not None
    of_a_row[(inp.numel() // keys,)](
        inp, attn_mask if masked else inp, queries, keys, heads * queries, masked, mask_future, wide
    )
