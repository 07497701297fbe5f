"""Matrix multiplication by few programs: each takes tile after tile of C, and moves pointers along k."""

import triton
import triton.language as tl

PROGRAMS, TILE, STEP = 132, 32, 32


@triton.jit
def many_tiles(c, a, b, m, n, k, tile: tl.constexpr, step: tl.constexpr):
    across = tl.cdiv(n, tile)
    for number in range(tl.program_id(0), tl.cdiv(m, tile) * across, tl.num_programs(0)):
        row = (number // across * tile + tl.arange(0, tile))[:, None]
        column = (number % across * tile + tl.arange(0, tile))[None, :]
        from_a = a + row * k + tl.arange(0, step)[None, :]
        from_b = b + tl.arange(0, step)[:, None] * n + column
        total = tl.zeros((tile, tile), tl.float32)
        for left in range(k, 0, -step):  # of k
            of_a = tl.load(from_a, mask=(row < m) & (tl.arange(0, step)[None, :] < left), other=0.0)
            of_b = tl.load(from_b, mask=(tl.arange(0, step)[:, None] < left) & (column < n), other=0.0)
            total += tl.dot(of_a, of_b, input_precision="ieee")
            from_a += step
            from_b += step * n
        tl.store(c + row * n + column, total, mask=(row < m) & (column < n))


def matmul(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    tiles = triton.cdiv(m, TILE) * triton.cdiv(n, TILE)
    many_tiles[(min(tiles, PROGRAMS),)](c, a, b, m, n, k, TILE, STEP)
