"""Softmax backward by two kernels: one finds the sums of the rows, one goes through all elements."""

import torch
import triton
import triton.language as tl


@triton.jit
def sums(totals, grad, soft, rows, keys, tall: tl.constexpr, wide: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * tall + tl.arange(0, tall)
    key = tl.arange(0, wide)
    inside = (row < rows)[:, None] & (key < keys)[None, :]
    at = row[:, None] * keys + key[None, :]
    product = tl.load(grad + at, mask=inside, other=0.0) * tl.load(soft + at, mask=inside, other=0.0)
    tl.store(totals + row, tl.sum(product, axis=1), mask=row < rows)


@triton.jit
def results(grad, soft, totals, elements, keys, size: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < elements
    total = tl.load(totals + at // keys, mask=inside, other=0.0)
    upstream = tl.load(grad + at, mask=inside, other=0.0)
    tl.store(grad + at, tl.load(soft + at, mask=inside, other=0.0) * (upstream - total), mask=inside)


def softmax_backward(out_grad, soft_inp):
    keys = soft_inp.shape[-1]
    elements = soft_inp.numel()
    rows = elements // keys
    wide = triton.next_power_of_2(keys)
    tall = max(1, 1024 // wide)
    totals = torch.empty((rows,), dtype=torch.float32, device=soft_inp.device)
    sums[(triton.cdiv(rows, tall),)](totals, out_grad, soft_inp, rows, keys, tall, wide)
    results[(triton.cdiv(elements, 1024),)](out_grad, soft_inp, totals, elements, keys, 1024)
