"""Attention by a program for each query, with sums in place of products of matrices."""

import triton
import triton.language as tl

KEYS = 32
DEPTH = tl.constexpr(64)


@triton.jit
def one_query(out, q, k, v, keys: tl.constexpr):
    query, number = tl.program_id(0), tl.arange(0, DEPTH)
    of_query = tl.load(q + query * DEPTH + number) / 8
    highest, total = -float("inf"), 0.0
    result = tl.zeros((keys, DEPTH), tl.float32)  # the keys are added up at the end
    for begin in range(0, query + 1, keys):
        key = begin + tl.arange(0, keys)
        at = key[:, None] * DEPTH + number[None, :]
        seen = key <= query
        of_keys = tl.load(k + at, mask=seen[:, None], other=0.0)
        logit = tl.where(seen, tl.sum(of_query[None, :] * of_keys, axis=1), -float("inf"))
        higher = tl.maximum(highest, tl.max(logit, axis=0))
        scale, power = tl.exp(highest - higher), tl.exp(logit - higher)
        total = total * scale + tl.sum(power, axis=0)
        result = result * scale + power[:, None] * tl.load(v + at, mask=seen[:, None], other=0.0)
        highest = higher
    tl.store(out + query * DEPTH + number, tl.sum(result, axis=0) / total)


def attention(out, q, k, v):
    one_query[(q.shape[0],)](out, q, k, v, KEYS)
