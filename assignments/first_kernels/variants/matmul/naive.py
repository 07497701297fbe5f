"""Matrix multiplication without tl.dot: for each place along k, a column of A times a row of B."""

import triton
import triton.language as tl

TILE = 32


@triton.jit
def outer_products(c, a, b, m, n, k, tile: tl.constexpr):
    across = tl.cdiv(n, tile)
    row = tl.program_id(0) // across * tile + tl.arange(0, tile)
    column = tl.program_id(0) % across * tile + tl.arange(0, tile)
    total = tl.zeros((tile, tile), tl.float32)
    for s in range(k):
        of_a = tl.load(a + row * k + s, mask=row < m, other=0.0)
        of_b = tl.load(b + s * n + column, mask=column < n, other=0.0)
        total += of_a[:, None] * of_b[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * n + column[None, :], total, mask=inside)


def matmul(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    outer_products[(triton.cdiv(m, TILE) * triton.cdiv(n, TILE),)](c, a, b, m, n, k, TILE)
