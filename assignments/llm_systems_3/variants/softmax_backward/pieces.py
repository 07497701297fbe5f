"""Softmax backward in pieces of the rows, which are read twice: for the sum, and for the results."""

import triton
import triton.language as tl


@triton.jit
def in_pieces(grad, soft, rows, keys, tall: tl.constexpr, wide: tl.constexpr):
    row = (tl.program_id(0) * tall + tl.arange(0, tall)).to(tl.int64)[:, None]
    total = tl.zeros((tall, wide), tl.float32)
    for first in range(0, keys, wide):
        key = (first + tl.arange(0, wide))[None, :]
        inside = (row < rows) & (key < keys)
        upstream = tl.load(grad + row * keys + key, mask=inside, other=0.0)
        total += upstream * tl.load(soft + row * keys + key, mask=inside, other=0.0)
    mean = tl.sum(total, axis=1)[:, None]
    for first in range(0, keys, wide):
        key = (first + tl.arange(0, wide))[None, :]
        inside = (row < rows) & (key < keys)
        upstream = tl.load(grad + row * keys + key, mask=inside, other=0.0)
        weight = tl.load(soft + row * keys + key, mask=inside, other=0.0)
        tl.store(grad + row * keys + key, weight * (upstream - mean), mask=inside)


def softmax_backward(out_grad, soft_inp):
    keys = soft_inp.shape[-1]
    rows = soft_inp.numel() // keys
    wide = min(64, triton.next_power_of_2(keys))
    tall = 256 // wide
    in_pieces[(triton.cdiv(rows, tall),)](out_grad, soft_inp, rows, keys, tall, wide)
