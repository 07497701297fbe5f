"""Matrix multiplication of half precision, C = A B, added up in float32 and rounded once.

Idea: tensor cores. tl.dot of two tiles in half precision uses them by itself, and adds to a tile in float32.
What is left is to feed them: a program computes a large tile of C, so that each number is used often, and
walks along k in steps of 64, with the loads of two more steps on their way to shared memory.

Operations: 2 m n k.

Launch: a program for each tile of C, all in one dimension of the grid. Tiles are 128 x 128 where there are
enough of them for all multiprocessors, else 64 x 64, and narrower where C is.
"""

import triton
import triton.language as tl

STEP, STAGES = 64, 3
ENOUGH = 128  # tiles: about as many as a large GPU has multiprocessors


@triton.jit
def ker_matmul_half(c, a, b, m, n, k, tall: tl.constexpr, wide: tl.constexpr, step: tl.constexpr):
    across = tl.cdiv(n, wide)
    row = (tl.program_id(0) // across * tall + tl.arange(0, tall))[:, None]
    column = (tl.program_id(0) % across * wide + tl.arange(0, wide))[None, :]
    total = tl.zeros((tall, wide), tl.float32)
    for begin in range(0, k, step):
        right = begin + tl.arange(0, step)[None, :]  # along a row of A
        down = begin + tl.arange(0, step)[:, None]  # along a column of B
        of_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        of_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(of_a, of_b, total)
    tl.store(c + row * n + column, total.to(tl.float16), mask=(row < m) & (column < n))


def matmul_half(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    most = 128 if m * n >= ENOUGH * 128 * 128 else 64
    tall, wide, step = side(m, most), side(n, most), side(k, STEP)
    grid = (triton.cdiv(m, tall) * triton.cdiv(n, wide),)
    warps = 8 if tall * wide > 64 * 64 else 4
    ker_matmul_half[grid](c, a, b, m, n, k, tall, wide, step, num_warps=warps, num_stages=STAGES)


def side(size, most):
    """How far a tile goes: tl.dot wants 16 at least, and powers of two."""
    return min(most, max(16, triton.next_power_of_2(size)))
