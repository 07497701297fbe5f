import torch
import triton
import triton.language as tl


@triton.jit
def ker_best(best, x, n, size: tl.constexpr):
    """A number and its place in 64 bits, of which an atomic keeps the largest."""
    at = tl.program_id(0) * size + tl.arange(0, size)
    bits = (tl.load(x + at, mask=at < n, other=0.0) + 0.0).to(tl.int32, bitcast=True)
    key = tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF).to(tl.int64)
    both = (key << 32) | (0x7FFFFFFF - at).to(tl.int64)
    tl.atomic_max(best, tl.max(tl.where(at < n, both, -9223372036854775808), axis=0))


@triton.jit
def ker_set(best):
    """Below every number."""
    tl.store(best, -9223372036854775808)


@triton.jit
def ker_tell(place, best):
    """The place alone."""
    tl.store(place, 0x7FFFFFFF - (tl.load(best) & 0xFFFFFFFF).to(tl.int32))


def argmax(place, x):
    """Write place[0]."""
    n = x.shape[0]
    best = torch.empty(1, dtype=torch.int64, device=x.device)
    ker_set[(1,)](best)
    ker_best[(triton.cdiv(n, 512),)](best, x, n, 512)
    ker_tell[(1,)](place, best)
