import torch
import triton
import triton.language as tl


@triton.jit
def ker_best(place, best, x, n, size: tl.constexpr):
    """Each program offers the best of its tile."""
    at = tl.program_id(0) * size + tl.arange(0, size)
    tile = tl.load(x + at, mask=at < n, other=float("-inf")) + 0.0
    bits = tile.to(tl.int32, bitcast=True)
    keys = tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF)
    keys = tl.where(tile == 0.0, 0, keys)
    keys = tl.where(at < n, keys, -2147483648)
    key = tl.max(keys, axis=0)
    mine = tl.min(tl.where(keys == key, at, 2147483647), axis=0)
    old = tl.atomic_max(best, key)
    if key > old:
        tl.atomic_or(place, 2147483647)
    if key >= old:
        tl.atomic_min(place, mine)


@triton.jit
def ker_begin(place, best):
    """Nothing found so far."""
    tl.store(best, -2147483648)
    tl.store(place, 2147483647)


def argmax(place, x):
    """Write place[0], an int32."""
    n = x.shape[0]
    best = torch.empty(1, dtype=torch.int32, device=x.device)
    ker_begin[(1,)](place, best)
    ker_best[(triton.cdiv(n, 1024),)](place, best, x, n, 1024)
