"""Attention that goes over the keys twice: once for the maximum and the sum, once for the output."""

import triton
import triton.language as tl

TILE = 16
DEPTH = tl.constexpr(64)


@triton.jit
def logits(of_queries, k, query, begin, n, tile: tl.constexpr):
    key = begin + tl.arange(0, tile)[None, :]
    number = tl.arange(0, DEPTH)[:, None]
    of_keys = tl.load(k + key * DEPTH + number, mask=key < n, other=0.0)
    logit = tl.dot(of_queries, of_keys, input_precision="ieee")
    return tl.where(key <= query, logit, -float("inf"))


@triton.jit
def twice(out, q, k, v, n, tile: tl.constexpr):
    query = (tl.program_id(0) * tile + tl.arange(0, tile))[:, None]
    number = tl.arange(0, DEPTH)[None, :]
    of_queries = tl.load(q + query * DEPTH + number, mask=query < n, other=0.0) * 0.125
    end = tl.minimum((tl.program_id(0) + 1) * tile, n)
    highest = tl.full((tile,), -float("inf"), tl.float32)
    total = tl.zeros((tile,), tl.float32)
    for begin in range(0, end, tile):
        logit = logits(of_queries, k, query, begin, n, tile)
        higher = tl.maximum(highest, tl.max(logit, axis=1))
        total = total * tl.exp(highest - higher) + tl.sum(tl.exp(logit - higher[:, None]), axis=1)
        highest = higher
    result = tl.zeros((tile, DEPTH), tl.float32)
    for begin in range(0, end, tile):
        logit = logits(of_queries, k, query, begin, n, tile)
        weight = tl.exp(logit - highest[:, None]) / total[:, None]
        key = begin + tl.arange(0, tile)[:, None]
        of_values = tl.load(v + key * DEPTH + number, mask=key < n, other=0.0)
        result = tl.dot(weight, of_values, result, input_precision="ieee")
    tl.store(out + query * DEPTH + number, result, mask=query < n)


def attention(out, q, k, v):
    n = q.shape[0]
    twice[(triton.cdiv(n, TILE),)](out, q, k, v, n, TILE)
