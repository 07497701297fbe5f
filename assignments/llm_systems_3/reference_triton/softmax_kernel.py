"""Softmax over the keys of attention, and its gradient, in Triton; float32, in place.

    weight_j = exp(l_j - max(l)) / sum(exp(l - max(l))),   l = inp + attn_mask, where the future is not hidden
    out_grad_j = soft_j (out_grad_j - sum(out_grad soft))

A program has a tile of whole rows. A row of which no key is visible gets zeros.
"""

import triton
import triton.language as tl

TILE = 1024  # elements, where a row has no more


@triton.jit
def forward(
    inp, mask, rows, queries, keys, per_batch, masked: tl.constexpr, future: tl.constexpr, tall: tl.constexpr,
    wide: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)
    key = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (key < keys)[None, :]
    at = row[:, None] * keys + key[None, :]
    visible = inside
    if future:
        visible = visible & (key[None, :] <= (row % queries)[:, None])
    logit = tl.load(inp + at, mask=visible, other=float("-inf"))
    if masked:
        logit += tl.load(mask + (row // per_batch)[:, None] * keys + key[None, :], mask=visible, other=0.0)
    most = tl.max(logit, axis=1)
    most = tl.where(most == float("-inf"), 0.0, most)
    weight = tl.exp(logit - most[:, None])
    total = tl.sum(weight, axis=1)
    total = tl.where(total == 0.0, 1.0, total)
    tl.store(inp + at, weight / total[:, None], mask=inside)


@triton.jit
def backward(grad, soft, rows, keys, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)
    key = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (key < keys)[None, :]
    at = row[:, None] * keys + key[None, :]
    upstream = tl.load(grad + at, mask=inside, other=0.0)
    weight = tl.load(soft + at, mask=inside, other=0.0)
    total = tl.sum(upstream * weight, axis=1)
    tl.store(grad + at, weight * (upstream - total[:, None]), mask=inside)


def softmax_forward(inp, attn_mask, mask_future):
    _batch, heads, queries, keys = inp.shape
    rows = inp.numel() // keys
    tall, wide = tile(keys)
    masked = attn_mask is not None
    mask = attn_mask if masked else inp
    forward[(triton.cdiv(rows, tall),)](
        inp, mask, rows, queries, keys, heads * queries, masked, mask_future, tall, wide
    )


def softmax_backward(out_grad, soft_inp):
    keys = soft_inp.shape[-1]
    rows = soft_inp.numel() // keys
    tall, wide = tile(keys)
    backward[(triton.cdiv(rows, tall),)](out_grad, soft_inp, rows, keys, tall, wide)


def tile(keys):
    """Rows and keys of a program."""
    wide = triton.next_power_of_2(keys)
    return max(1, TILE // wide), wide
