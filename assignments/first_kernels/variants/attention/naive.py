"""Attention by three kernels, with all logits in memory: products, softmax of each row, products."""

import torch
import triton
import triton.language as tl

TILE = 32
DEPTH = tl.constexpr(64)


@triton.jit
def multiply_keys(logits, q, k, n, tile: tl.constexpr):
    query = (tl.program_id(0) * tile + tl.arange(0, tile))[:, None]
    key = (tl.program_id(1) * tile + tl.arange(0, tile))[None, :]
    row, column = tl.arange(0, DEPTH)[None, :], tl.arange(0, DEPTH)[:, None]
    of_queries = tl.load(q + query * DEPTH + row, mask=query < n, other=0.0)
    of_keys = tl.load(k + key * DEPTH + column, mask=key < n, other=0.0)
    logit = tl.dot(of_queries, of_keys, input_precision="ieee") / 8
    logit = tl.where(key > query, -float("inf"), logit)
    tl.store(logits + query * n + key, logit, mask=(query < n) & (key < n))


@triton.jit
def weigh(logits, n, wide: tl.constexpr):
    key = tl.arange(0, wide)
    at = logits + tl.program_id(0) * n + key
    logit = tl.load(at, mask=key < n, other=-float("inf"))
    power = tl.exp(logit - tl.max(logit, axis=0))
    tl.store(at, power / tl.sum(power, axis=0), mask=key < n)


@triton.jit
def multiply_values(out, weights, v, n, tile: tl.constexpr):
    query = (tl.program_id(0) * tile + tl.arange(0, tile))[:, None]
    number = tl.arange(0, DEPTH)[None, :]
    total = tl.zeros((tile, DEPTH), tl.float32)
    for begin in range(0, n, tile):
        key = begin + tl.arange(0, tile)
        inside = (query < n) & (key[None, :] < n)
        weight = tl.load(weights + query * n + key[None, :], mask=inside, other=0.0)
        value = tl.load(v + key[:, None] * DEPTH + number, mask=key[:, None] < n, other=0.0)
        total += tl.dot(weight, value, input_precision="ieee")
    tl.store(out + query * DEPTH + number, total, mask=query < n)


def attention(out, q, k, v):
    n = q.shape[0]
    tiles = triton.cdiv(n, TILE)
    logits = torch.empty((n, n), dtype=torch.float32, device=q.device)
    multiply_keys[(tiles, tiles)](logits, q, k, n, TILE)
    weigh[(n,)](logits, n, triton.next_power_of_2(n))
    multiply_values[(tiles,)](out, logits, v, n, TILE)
