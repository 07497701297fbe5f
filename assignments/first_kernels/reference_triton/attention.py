"""Causal attention, one head: tiles of keys go by, and an online softmax keeps up with them.

Idea: the n x n logits are never stored. A program has 16 queries. For each tile of 32 keys it computes their
logits, and with a larger maximum than before it scales down what it has: `scale = 2^(old maximum - new one)`
on the sum of powers and on the output. At the end the output is divided by the sum. Tiles behind the last
query are left out.

"ieee" keeps the products in float32: by default tl.dot rounds to the 11 bits of TF32, which is wrong here.

Work: 4 DEPTH n^2 / 2 operations on 16 DEPTH n bytes, so arithmetic is the limit.

Launch: a program of 4 warps for each 16 queries, the last ones first, as they have the most keys. With more
queries each number of a key would be used more often, but there would be programs for fewer multiprocessors:
n of 2048 makes 128 of them.
"""

import triton
import triton.language as tl

QUERIES, KEYS = 16, 32
DEPTH = tl.constexpr(64)
FACTOR = tl.constexpr(1.4426950408889634 / 8)  # log2(e) / sqrt(DEPTH), as powers are of 2


@triton.jit
def ker_attention(out, q, k, v, n, queries: tl.constexpr, keys: tl.constexpr):
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * queries
    query, number = first + tl.arange(0, queries), tl.arange(0, DEPTH)
    place = query[:, None] * DEPTH + number[None, :]
    of_queries = tl.load(q + place, mask=query[:, None] < n, other=0.0)

    highest = tl.full((queries,), -float("inf"), tl.float32)
    total = tl.zeros((queries,), tl.float32)
    result = tl.zeros((queries, DEPTH), tl.float32)
    for begin in range(0, tl.minimum(first + queries, n), keys):
        key = begin + tl.arange(0, keys)
        # The keys are loaded as columns, the values as rows.
        of_keys = tl.load(k + key[None, :] * DEPTH + number[:, None], mask=key[None, :] < n, other=0.0)
        logit = tl.dot(of_queries, of_keys, input_precision="ieee") * FACTOR
        logit = tl.where(key[None, :] <= query[:, None], logit, -float("inf"))
        higher = tl.maximum(highest, tl.max(logit, axis=1))
        scale = tl.exp2(highest - higher)
        power = tl.exp2(logit - higher[:, None])
        total = total * scale + tl.sum(power, axis=1)
        of_values = tl.load(v + key[:, None] * DEPTH + number[None, :], mask=key[:, None] < n, other=0.0)
        result = tl.dot(power, of_values, result * scale[:, None], input_precision="ieee")
        highest = higher
    tl.store(out + place, result / total[:, None], mask=query[:, None] < n)


def attention(out, q, k, v):
    n = q.shape[0]
    ker_attention[(triton.cdiv(n, QUERIES),)](out, q, k, v, n, QUERIES, KEYS)
