import torch
import triton
import triton.language as tl


@triton.jit
def ker_reduce_sum(total, work, done, x, n, size: tl.constexpr):
    """Each program adds its share; the last one hands the sum over."""
    share = tl.zeros((size,), dtype=tl.float32)
    for first in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = first + tl.arange(0, size)
        share += tl.load(x + at, mask=at < n, other=0.0)
    tl.atomic_add(work, tl.sum(share), sem="relaxed")
    before = tl.atomic_add(done, 1, sem="relaxed")
    if before == tl.num_programs(0) - 1:
        tl.store(total, tl.atomic_xchg(work, 0.0, sem="relaxed"))


def reduce_sum(total, x):
    """Write total[0]."""
    n = x.shape[0]
    work = torch.zeros(1, dtype=torch.float32, device=x.device)
    done = torch.zeros(1, dtype=torch.int32, device=x.device)
    ker_reduce_sum[(min(triton.cdiv(n, 1024), 216),)](total, work, done, x, n, 1024)
