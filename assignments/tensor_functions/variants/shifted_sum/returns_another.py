"""The sum is written to a new tensor, which is returned in place of the one that is given."""

import torch
import triton
import triton.language as tl


@triton.jit
def ker_sum(z, x, y, shift, n, size: tl.constexpr):
    for start in range(tl.program_id(0) * size, n, tl.num_programs(0) * size):
        at = start + tl.arange(0, size)
        inside = at < n
        tl.store(z + at, tl.load(x + at, mask=inside) + (tl.load(y + at, mask=inside) + shift), mask=inside)


def custom_kernel(data):
    x, y, shift, out = data
    z = torch.empty_like(out)
    ker_sum[(min(64, triton.cdiv(x.numel(), 256)),)](z, x, y, shift, x.numel(), 256)
    return (z,)
