"""Matrix multiplication in float32: C = A B.

Idea: each number that is loaded must be used often. A program computes a tile of C and walks along k in
steps: it loads a tile of A and one of B, zeros where they end, and tl.dot adds their product. Triton keeps
both tiles in shared memory, where each number serves a whole row or column of C, gives each thread a part of
C in registers, and has the loads of the next steps on their way while it computes one.

"ieee" keeps float32: by default tl.dot rounds its operands to the 11 bits of TF32, which is wrong here.

Operations: 2 m n k.

Launch: a program for each tile of C, all in one dimension of the grid. A tile is 64 x 64, or narrower where C
is.
"""

import triton
import triton.language as tl

TILE, STEP = 64, 16


@triton.jit
def ker_matmul(c, a, b, m, n, k, tall: tl.constexpr, wide: tl.constexpr, step: tl.constexpr):
    across = tl.cdiv(n, wide)
    row = (tl.program_id(0) // across * tall + tl.arange(0, tall))[:, None]
    column = (tl.program_id(0) % across * wide + tl.arange(0, wide))[None, :]
    total = tl.zeros((tall, wide), tl.float32)
    for begin in range(0, k, step):
        right = begin + tl.arange(0, step)[None, :]  # along a row of A
        down = begin + tl.arange(0, step)[:, None]  # along a column of B
        of_a = tl.load(a + row * k + right, mask=(row < m) & (right < k), other=0.0)
        of_b = tl.load(b + down * n + column, mask=(down < k) & (column < n), other=0.0)
        total = tl.dot(of_a, of_b, total, input_precision="ieee")
    tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


def matmul(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    tall, wide = side(m), side(n)
    grid = (triton.cdiv(m, tall) * triton.cdiv(n, wide),)
    ker_matmul[grid](c, a, b, m, n, k, tall, wide, STEP)


def side(size):
    """How far a tile of C goes down or across: tl.dot wants 16 at least, and powers of two."""
    return min(TILE, max(16, triton.next_power_of_2(size)))
