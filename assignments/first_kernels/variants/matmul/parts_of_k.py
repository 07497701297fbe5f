"""Matrix multiplication with k shared among programs, which add their products to C by atomic operations."""

import triton
import triton.language as tl

TILE, STEP, PART = 32, 16, 256


@triton.jit
def one_part(c, a, b, m, n, k, tile: tl.constexpr, step: tl.constexpr, part: tl.constexpr):
    across = tl.cdiv(n, tile)
    row = (tl.program_id(0) // across * tile + tl.arange(0, tile))[:, None]
    column = (tl.program_id(0) % across * tile + tl.arange(0, tile))[None, :]
    first = tl.program_id(1) * part
    total = tl.zeros((tile, tile), tl.float32)
    for begin in range(first, tl.minimum(first + part, k), step):
        right, down = begin + tl.arange(0, step)[None, :], begin + tl.arange(0, step)[:, None]
        of_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        of_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(of_a, of_b, total, input_precision="ieee")
    tl.atomic_add(c + row * n + column, total, mask=(row < m) & (column < n), sem="relaxed")


def matmul(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    c.zero_()
    one_part[(triton.cdiv(m, TILE) * triton.cdiv(n, TILE), triton.cdiv(k, PART))](
        c, a, b, m, n, k, TILE, STEP, PART
    )
