"""A chain: each tile waits for the prefix of the one before it, which a flag says is there."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker(sums, prefixes, flags, ticket, x, n, size: tl.constexpr):
    tile = tl.atomic_add(ticket, 1)
    at = tile * size + tl.arange(0, size)
    value = tl.load(x + at, mask=at < n, other=0.0)
    before = 0.0
    if tile > 0:
        while tl.atomic_add(flags + tile - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(prefixes + tile - 1, volatile=True)
    tl.store(prefixes + tile, before + tl.sum(value, axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(flags + tile, 1, sem="release")
    tl.store(sums + at, before + tl.cumsum(value, axis=0), mask=at < n)


def scan(sums, x):
    n = x.shape[0]
    count = triton.cdiv(n, 4096)
    flags = torch.zeros((count + 1,), dtype=torch.int32, device=x.device)
    prefixes = torch.empty((count,), dtype=torch.float32, device=x.device)
    ker[(count,)](sums, prefixes, flags, flags[count:], x, n, 4096, num_warps=8)
