"""Matrix multiplication of half precision with k shared among programs; a second kernel adds them up."""

import torch
import triton
import triton.language as tl

TILE, STEP, PARTS = 32, 32, 4


@triton.jit
def part(parts, a, b, m, n, k, tile: tl.constexpr, step: tl.constexpr):
    across = tl.cdiv(n, tile)
    row = (tl.program_id(0) // across * tile + tl.arange(0, tile))[:, None]
    column = (tl.program_id(0) % across * tile + tl.arange(0, tile))[None, :]
    total = tl.zeros((tile, tile), tl.float32)
    for begin in range(tl.program_id(1) * step, k, tl.num_programs(1) * step):
        s = begin + tl.arange(0, step)
        of_a = tl.load(a + row * k + s[None, :], mask=(row < m) & (s[None, :] < k), other=0.0)
        of_b = tl.load(b + s[:, None] * n + column, mask=(s[:, None] < k) & (column < n), other=0.0)
        total = tl.dot(of_a, of_b, total)
    at = (tl.program_id(1) * m + row) * n + column
    tl.store(parts + at, total, mask=(row < m) & (column < n))


@triton.jit
def add_up(c, parts, elements, count, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    total = tl.zeros((size,), tl.float32)
    for number in range(count):
        total += tl.load(parts + number * elements + at, mask=at < elements, other=0.0)
    tl.store(c + at, total.to(tl.float16), mask=at < elements)


def matmul_half(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    count = min(PARTS, triton.cdiv(k, STEP))
    parts = torch.empty((count, m, n), dtype=torch.float32, device=c.device)
    part[(triton.cdiv(m, TILE) * triton.cdiv(n, TILE), count)](parts, a, b, m, n, k, TILE, STEP)
    add_up[(triton.cdiv(m * n, 1024),)](c, parts, m * n, count, 1024)
