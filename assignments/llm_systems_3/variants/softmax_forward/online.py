"""Softmax forward in pieces of the rows: maximum and sum in one pass (online softmax), then the weights."""

import triton
import triton.language as tl


@triton.jit
def logits(inp, mask, row, key, queries, keys, per_batch, masked: tl.constexpr, future: tl.constexpr):
    visible = key < keys
    if future:
        visible = visible & (key <= row % queries)
    logit = tl.load(inp + row * keys + key, mask=visible, other=float("-inf"))
    if masked:
        logit += tl.load(mask + (row // per_batch) * keys + key, mask=visible, other=0.0)
    return logit


@triton.jit
def in_pieces(
    inp, mask, queries, keys, per_batch, masked: tl.constexpr, future: tl.constexpr, wide: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((wide,), float("-inf"), tl.float32)
    total = tl.zeros((wide,), tl.float32)
    for first in range(0, keys, wide):
        logit = logits(inp, mask, row, first + tl.arange(0, wide), queries, keys, per_batch, masked, future)
        larger = tl.maximum(largest, logit)
        base = tl.where(larger == float("-inf"), 0.0, larger)
        total = total * tl.exp(largest - base) + tl.exp(logit - base)
        largest = larger
    most = tl.max(largest, axis=0)
    most = tl.where(most == float("-inf"), 0.0, most)
    whole = tl.sum(total * tl.exp(largest - most), axis=0)
    whole = tl.where(whole == 0.0, 1.0, whole)
    for first in range(0, keys, wide):
        key = first + tl.arange(0, wide)
        logit = logits(inp, mask, row, key, queries, keys, per_batch, masked, future)
        tl.store(inp + row * keys + key, tl.exp(logit - most) / whole, mask=key < keys)


def softmax_forward(inp, attn_mask, mask_future):
    _batch, heads, queries, keys = inp.shape
    masked = attn_mask is not None
    in_pieces[(inp.numel() // keys,)](
        inp,
        attn_mask if masked else inp,
        queries,
        keys,
        heads * queries,
        masked,
        mask_future,
        128,
        num_warps=1,
    )
