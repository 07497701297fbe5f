"""Causal attention with an online softmax."""

import triton
import triton.language as tl

DEPTH = tl.constexpr(64)


@triton.jit
def ker_attention(out, q, k, v, n, queries: tl.constexpr, keys: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * queries + tl.arange(0, queries)
    d = tl.arange(0, DEPTH)
    mine = tl.load(q + i[:, None] * DEPTH + d[None, :], mask=i[:, None] < n, other=0.0) * 0.125
    most = tl.full([queries], -float("inf"), tl.float32)
    total = tl.zeros([queries], tl.float32)
    acc = tl.zeros([queries, DEPTH], tl.float32)
    for start in range(0, min((pid + 1) * queries, n), keys):
        j = start + tl.arange(0, keys)
        theirs = tl.load(k + j[None, :] * DEPTH + d[:, None], mask=j[None, :] < n, other=0.0)
        logit = tl.dot(mine, theirs, input_precision="ieee")
        logit = tl.where(j[None, :] <= i[:, None], logit, -700.0)
        now = tl.maximum(most, tl.max(logit, 1))
        p = tl.exp(logit - now[:, None])
        scale = tl.exp(most - now)
        total = total * scale + tl.sum(p, 1)
        values = tl.load(v + j[:, None] * DEPTH + d[None, :], mask=j[:, None] < n, other=0.0)
        acc = acc * scale[:, None] + tl.dot(p, values, input_precision="ieee")
        most = now
    tl.store(out + i[:, None] * DEPTH + d[None, :], acc / total[:, None], mask=i[:, None] < n)


def attention(out, q, k, v):
    n = q.shape[0]
    ker_attention[(triton.cdiv(n, 32),)](out, q, k, v, n, 32, 32)
