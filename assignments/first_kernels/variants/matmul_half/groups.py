"""Matrix multiplication of half precision, with programs in groups whose rows and columns stay in L2."""

import triton
import triton.language as tl

TALL, WIDE, STEP, GROUP = 64, 64, 32, 8


@triton.jit
def grouped(
    c, a, b, m, n, k, tall: tl.constexpr, wide: tl.constexpr, step: tl.constexpr, group: tl.constexpr
):
    down, across = tl.cdiv(m, tall), tl.cdiv(n, wide)
    number = tl.program_id(0)
    of_row, of_column = tl.swizzle2d(number // across, number % across, down, across, group)
    row = (of_row * tall + tl.arange(0, tall))[:, None]
    column = (of_column * wide + tl.arange(0, wide))[None, :]
    total = tl.zeros((tall, wide), tl.float32)
    for begin in range(0, k, step):
        s = begin + tl.arange(0, step)
        of_a = tl.load(a + row * k + s[None, :], mask=(row < m) & (s[None, :] < k), other=0.0)
        of_b = tl.load(b + s[:, None] * n + column, mask=(s[:, None] < k) & (column < n), other=0.0)
        total += tl.dot(of_a, of_b)
    tl.store(c + row * n + column, total.to(tl.float16), mask=(row < m) & (column < n))


def matmul_half(c, a, b):
    (m, k), n = a.shape, b.shape[1]
    grid = (triton.cdiv(m, TALL) * triton.cdiv(n, WIDE),)
    grouped[grid](c, a, b, m, n, k, TALL, WIDE, STEP, GROUP, num_stages=4)
