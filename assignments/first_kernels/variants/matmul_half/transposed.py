"""Matrix multiplication of half precision as B^T A^T, with everything loaded and stored transposed."""

import triton
import triton.language as tl

TILE, STEP = 32, 32


@triton.jit
def turned(c, a, b, m, n, k, tile: tl.constexpr, step: tl.constexpr):
    across = tl.cdiv(n, tile)
    row = (tl.program_id(0) // across * tile + tl.arange(0, tile))[None, :]
    column = (tl.program_id(0) % across * tile + tl.arange(0, tile))[:, None]
    total = tl.zeros((tile, tile), tl.float32)
    for begin in range(0, k, step):
        s = begin + tl.arange(0, step)
        of_b = tl.load(b + s[None, :] * n + column, mask=(s[None, :] < k) & (column < n), other=0.0)
        of_a = tl.load(a + row * k + s[:, None], mask=(s[:, None] < k) & (row < m), other=0.0)
        total = tl.dot(of_b, of_a, total)
    tl.store(c + row * n + column, total.to(tl.float16), mask=(row < m) & (column < n))


def matmul_half(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    turned[(triton.cdiv(m, TILE) * triton.cdiv(n, TILE),)](c, a, b, m, n, k, TILE, STEP, num_warps=2)
