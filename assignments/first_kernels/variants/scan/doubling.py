"""In each launch every element adds the one that is twice as far before it as in the launch before."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker(out, x, n, distance, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    value = tl.load(x + at, mask=at < n, other=0.0)
    before = tl.load(x + at - distance, mask=(at >= distance) & (at < n), other=0.0)
    tl.store(out + at, value + before, mask=at < n)


def scan(sums, x):
    n = x.shape[0]
    launches = max(1, (n - 1).bit_length())
    other = torch.empty((n,), dtype=torch.float32, device=x.device)
    for launch in range(launches):
        out = sums if (launches - launch) % 2 == 1 else other
        ker[(triton.cdiv(n, 1024),)](out, x, n, 1 << launch, 1024)
        x = out
