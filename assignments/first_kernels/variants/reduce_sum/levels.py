"""Each launch adds up tiles of what the one before has left, until one number is left."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker(out, x, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at, mask=at < n, other=0.0), axis=0))


def reduce_sum(total, x):
    left = x.shape[0]
    while True:
        count = triton.cdiv(left, 2048)
        out = total if count == 1 else torch.empty((count,), dtype=torch.float32, device=x.device)
        ker[(count,)](out, x, left, 2048)
        if count == 1:
            return
        x, left = out, count
