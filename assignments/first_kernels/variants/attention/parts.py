"""Attention whose keys are shared among programs, each with its own maximum; a second kernel joins them."""

import torch
import triton
import triton.language as tl

QUERIES, KEYS, PARTS = 16, 16, 4
DEPTH = tl.constexpr(64)


@triton.jit
def one_part(results, maxima, sums, q, k, v, n, queries: tl.constexpr, keys: tl.constexpr):
    first, part = tl.program_id(0) * queries, tl.program_id(1)
    query, number = first + tl.arange(0, queries), tl.arange(0, DEPTH)
    of_queries = tl.load(q + query[:, None] * DEPTH + number[None, :], mask=query[:, None] < n, other=0.0)
    highest = tl.full((queries,), -1e30, tl.float32)  # finite, as a query may see no key of a part
    total = tl.zeros((queries,), tl.float32)
    result = tl.zeros((queries, DEPTH), tl.float32)
    for begin in range(part * keys, tl.minimum(first + queries, n), tl.num_programs(1) * keys):
        key = begin + tl.arange(0, keys)
        of_keys = tl.load(k + key[None, :] * DEPTH + number[:, None], mask=key[None, :] < n, other=0.0)
        logit = tl.dot(of_queries, of_keys, input_precision="ieee") / 8
        logit = tl.where(key[None, :] > query[:, None], -float("inf"), logit)
        higher = tl.maximum(highest, tl.max(logit, axis=1))
        scale, power = tl.exp(highest - higher), tl.exp(logit - higher[:, None])
        total = total * scale + tl.sum(power, axis=1)
        value = tl.load(v + key[:, None] * DEPTH + number[None, :], mask=key[:, None] < n, other=0.0)
        result = result * scale[:, None] + tl.dot(power, value, input_precision="ieee")
        highest = higher
    row = part * n + query
    tl.store(maxima + row, highest, mask=query < n)
    tl.store(sums + row, total, mask=query < n)
    tl.store(results + row[:, None] * DEPTH + number[None, :], result, mask=query[:, None] < n)


@triton.jit
def join(out, results, maxima, sums, n, parts: tl.constexpr):
    row = tl.arange(0, parts) * n + tl.program_id(0)
    number = tl.arange(0, DEPTH)
    highest = tl.load(maxima + row)
    scale = tl.exp(highest - tl.max(highest, axis=0))
    result = tl.load(results + row[:, None] * DEPTH + number[None, :]) * scale[:, None]
    total = tl.sum(tl.load(sums + row) * scale, axis=0)
    tl.store(out + tl.program_id(0) * DEPTH + number, tl.sum(result, axis=0) / total)


def attention(out, q, k, v):
    n = q.shape[0]
    results = torch.empty((PARTS, n, q.shape[1]), dtype=torch.float32, device=q.device)
    maxima, sums = (torch.empty((PARTS, n), dtype=torch.float32, device=q.device) for _ in range(2))
    one_part[(triton.cdiv(n, QUERIES), PARTS)](results, maxima, sums, q, k, v, n, QUERIES, KEYS)
    join[(n,)](out, results, maxima, sums, n, PARTS, num_warps=1)
