"""One launch: the program that finishes last adds up the partial sums."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker(total, sums, done, x, n, size: tl.constexpr, most: tl.constexpr):
    part = tl.zeros((size,), tl.float32)
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        part += tl.load(x + at, mask=at < n, other=0.0)
    tl.store(sums + tl.program_id(0), tl.sum(part, axis=0))
    tl.debug_barrier()
    if tl.atomic_add(done, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        at = tl.arange(0, most)
        of_all = tl.load(sums + at, mask=at < tl.num_programs(0), other=0.0, volatile=True)
        tl.store(total, tl.sum(of_all, axis=0))


def reduce_sum(total, x):
    n = x.shape[0]
    programs = min(triton.cdiv(n, 1024), 256)
    sums = torch.empty((programs,), dtype=torch.float32, device=x.device)
    done = torch.zeros((1,), dtype=torch.int32, device=x.device)
    ker[(programs,)](total, sums, done, x, n, 1024, 256)
