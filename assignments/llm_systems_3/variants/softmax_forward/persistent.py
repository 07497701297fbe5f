"""Softmax forward by a fixed number of programs, each of which goes through tiles of rows."""

import triton
import triton.language as tl

PROGRAMS = 264


@triton.jit
def of_many_rows(
    inp, mask, rows, queries, keys, per_batch, masked: tl.constexpr, future: tl.constexpr, tall: tl.constexpr,
    wide: tl.constexpr,
):  # fmt: skip
    key = tl.arange(0, wide)[None, :]
    for first in range(tl.program_id(0) * tall, rows, tl.num_programs(0) * tall):
        row = (first + tl.arange(0, tall)).to(tl.int64)[:, None]
        inside = (row < rows) & (key < keys)
        hidden = (key > row % queries) & future
        logit = tl.load(inp + row * keys + key, mask=inside, other=float("-inf"))
        if masked:
            logit += tl.load(mask + row // per_batch * keys + key, mask=inside, other=0.0)
        logit = tl.where(hidden, float("-inf"), logit)
        most = tl.max(logit, axis=1, keep_dims=True)
        weight = tl.exp(logit - tl.where(most == float("-inf"), 0.0, most))
        tl.store(
            inp + row * keys + key, weight / (tl.sum(weight, axis=1, keep_dims=True) + 1e-8), mask=inside
        )


def softmax_forward(inp, attn_mask, mask_future):
    _batch, heads, queries, keys = inp.shape
    rows = inp.numel() // keys
    wide = triton.next_power_of_2(keys)
    tall = max(1, 2048 // wide)
    masked = attn_mask is not None
    of_many_rows[(min(PROGRAMS, triton.cdiv(rows, tall)),)](
        inp,
        attn_mask if masked else inp,
        rows,
        queries,
        keys,
        heads * queries,
        masked,
        mask_future,
        tall,
        wide,
    )
