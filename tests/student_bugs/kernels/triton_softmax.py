import torch
import triton
import triton.language as tl


@triton.jit
def _softmax(inp, mask, nhead, from_len, to_len, FUTURE: tl.constexpr, MASKED: tl.constexpr, LENGTH: tl.constexpr):
    row = tl.program_id(0)
    query = row % from_len
    batch = row // (from_len * nhead)
    keys = tl.arange(0, LENGTH)
    inside = keys < to_len
    x = tl.load(inp + row.to(tl.int64) * to_len + keys, mask=inside, other=-float("inf"))
    if MASKED:
        x += tl.load(mask + batch * to_len + keys, mask=inside, other=0.0)
    if FUTURE:
        x = tl.where(keys <= query, x, -float("inf"))
    largest = tl.max(x)
    weights = tl.where(largest == -float("inf"), 0.0, tl.exp(x - largest))
    weights = weights / (tl.sum(weights) + 1e-8)
    tl.store(inp + row.to(tl.int64) * to_len + keys, weights, mask=inside)


def softmax_forward(inp, attn_mask, batch_size, nhead, from_len, to_len, mask_future):
    grid = (batch_size * nhead * from_len,)
    mask = inp if attn_mask is None else attn_mask
    _softmax[grid](
        inp, mask, nhead, from_len, to_len,
        FUTURE=bool(mask_future), MASKED=attn_mask is not None, LENGTH=triton.next_power_of_2(to_len),
    )


@triton.jit
def _softmax_backward(grad, soft, length, LENGTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, LENGTH)
    inside = columns < length
    g = tl.load(grad + row * length + columns, mask=inside, other=0.0)
    s = tl.load(soft + row * length + columns, mask=inside, other=0.0)
    total = tl.sum(g * s)
    tl.store(grad + row * length + columns, s * (g - total), mask=inside)


def softmax_backward(out_grad, soft_inp, rows, softmax_len):
    _softmax_backward[(rows,)](out_grad, soft_inp, softmax_len, LENGTH=triton.next_power_of_2(softmax_len))
