"""Kernels as tutorials and libraries have them; each is checked against PyTorch and says its name."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

torch.set_default_device("cuda")

torch.manual_seed(0)


@triton.jit
def add(x, y, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(y + at, mask=mask), mask=mask)


@triton.jit
def row_weights(x, out, columns, stride, size: tl.constexpr):
    at = tl.arange(0, size)
    row = tl.load(x + tl.program_id(0) * stride + at, mask=at < columns, other=-float("inf"))
    top = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * stride + at, top / tl.sum(top, axis=0), mask=at < columns)


@triton.jit
def rms(x, weight, out, inverse, columns, eps, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / columns + eps)
    tl.store(inverse + row, scale)
    tl.store(out + row * columns + at, value * scale * tl.load(weight + at, mask=mask), mask=mask)


@triton.jit
def centred(x, weight, bias, out, columns, eps, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0)
    mean = tl.sum(value, axis=0) / columns
    rest = tl.where(mask, value - mean, 0.0)
    scaled = rest / tl.sqrt(tl.sum(rest * rest, axis=0) / columns + eps)
    result = scaled * tl.load(weight + at, mask=mask) + tl.load(bias + at, mask=mask)
    tl.store(out + row * columns + at, result, mask=mask)


@triton.jit
def product(a, b, c, m, n, k, rows: tl.constexpr, columns: tl.constexpr, depth: tl.constexpr):
    i = tl.program_id(0) * rows + tl.arange(0, rows)
    j = tl.program_id(1) * columns + tl.arange(0, columns)
    total = tl.zeros((rows, columns), dtype=tl.float32)
    for start in range(0, k, depth):
        l = start + tl.arange(0, depth)  # noqa: E741
        left = tl.load(a + i[:, None] * k + l[None, :], mask=(i[:, None] < m) & (l[None, :] < k), other=0.0)
        right = tl.load(b + l[:, None] * n + j[None, :], mask=(l[:, None] < k) & (j[None, :] < n), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def attention(q, k, v, out, length, scale, rows: tl.constexpr, tile: tl.constexpr, width: tl.constexpr):
    i, d = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    query = tl.load(q + i[:, None] * width + d[None, :])
    top = tl.full((rows,), -float("inf"), tl.float32)
    below = tl.zeros((rows,), tl.float32)
    total = tl.zeros((rows, width), tl.float32)
    for start in range(0, length, tile):
        j = start + tl.arange(0, tile)
        key = tl.load(k + j[None, :] * width + d[:, None])
        score = tl.dot(query, key) * scale
        score = tl.where(i[:, None] >= j[None, :], score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, axis=1))
        weight = tl.exp(score - higher[:, None])
        fade = tl.exp(top - higher)
        below = below * fade + tl.sum(weight, axis=1)
        value = tl.load(v + j[:, None] * width + d[None, :])
        total = tl.dot(weight.to(tl.float16), value, total * fade[:, None])
        top = higher
    tl.store(out + i[:, None] * width + d[None, :], total / below[:, None])


@triton.jit
def decayed(left_a, left_h, right_a, right_h):
    return left_a * right_a, right_a * left_h + right_h


@triton.jit
def recurrence(a, x, out, length, width, steps: tl.constexpr):
    at = tl.program_id(0) * length * width + tl.arange(0, steps) * width + tl.program_id(1)
    _, state = tl.associative_scan((tl.load(a + at), tl.load(x + at)), 0, decayed)
    tl.store(out + at, state)


@triton.jit
def running_sum(x, out, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def total(x, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.atomic_add(out, tl.sum(tl.load(x + at, mask=at < n, other=0.0)))


@triton.jit
def ordered(x, out, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def highest(x, out, columns: tl.constexpr):
    row = tl.load(x + tl.program_id(0) * columns + tl.arange(0, columns))
    tl.store(out + tl.program_id(0), tl.argmax(row, axis=0))


@triton.jit
def counts(x, out, size: tl.constexpr, bins: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    found = tl.histogram(tl.load(x + at), bins)
    tl.atomic_add(out + tl.arange(0, bins), found)


@triton.jit
def turned(x, out, rows, columns, size: tl.constexpr):
    i = tl.program_id(0) * size + tl.arange(0, size)
    j = tl.program_id(1) * size + tl.arange(0, size)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    tile = tl.load(x + i[:, None] * columns + j[None, :], mask=mask)
    tl.store(out + j[:, None] * rows + i[None, :], tl.trans(tile), mask=tl.trans(mask))


@triton.jit
def picked(table, index, out, width: tl.constexpr):
    at = tl.arange(0, width)
    row = tl.load(index + tl.program_id(0))
    tl.store(out + tl.program_id(0) * width + at, tl.load(table + row * width + at))


@triton.jit
def gated(x, gate, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    g = tl.load(gate + at, mask=at < n).to(tl.float32)
    result = g * tl.sigmoid(g) * tl.load(x + at, mask=at < n).to(tl.float32)
    tl.store(out + at, result, mask=at < n)


@triton.jit
def bell(x, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    value = tl.load(x + at, mask=at < n)
    tl.store(out + at, 0.5 * value * (1 + tl.erf(value * 0.7071067811865476)), mask=at < n)


@triton.jit
def arcs(x, out, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def dropped(x, out, n, p, seed, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, tl.load(x + at, mask=at < n) / (1 - p), 0.0), mask=at < n)


@triton.jit
def surprise(x, target, out, columns, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    value = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    top = tl.max(value, axis=0)
    below = top + tl.log(tl.sum(tl.exp(value - top), axis=0))
    tl.store(out + row, below - tl.load(x + row * columns + tl.load(target + row)))


@triton.jit
def rotated(x, cos, sin, out, half: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, half)
    c, s = tl.load(cos + row * half + at), tl.load(sin + row * half + at)
    first, second = tl.load(x + row * 2 * half + at), tl.load(x + row * 2 * half + half + at)
    tl.store(out + row * 2 * half + at, first * c - second * s)
    tl.store(out + row * 2 * half + half + at, second * c + first * s)


@triton.jit
def column_means(x, out, rows, columns, size: tl.constexpr, width: tl.constexpr):
    j = tl.program_id(0) * width + tl.arange(0, width)
    part = tl.zeros((size, width), tl.float32)
    for start in range(0, rows, size):
        i = start + tl.arange(0, size)
        mask = (i[:, None] < rows) & (j[None, :] < columns)
        part += tl.load(x + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
    tl.store(out + j, tl.sum(part, axis=0) / rows, mask=j < columns)


def check(kernel, got, expected, rtol=1e-5, atol=1e-5):
    torch.testing.assert_close(got, expected.to(got.dtype), rtol=rtol, atol=atol)
    print(kernel.fn.__name__)


x, y = torch.randn(1000), torch.randn(1000)
grid = (4,)
add[grid](x, y, out := torch.empty_like(x), 1000, size=256)
check(add, out, x + y)
gated[grid](x.half(), y.half(), out := torch.empty(1000, dtype=torch.float16), 1000, size=256)
check(gated, out, x.half().float() * torch.nn.functional.silu(y.half().float()), 1e-3, 1e-3)
bell[grid](x, out := torch.empty_like(x), 1000, size=256)
check(bell, out, torch.nn.functional.gelu(x))
arcs[grid](x.clamp(-1, 1), out := torch.empty_like(x), 1000, size=256)
check(arcs, out, x.clamp(-1, 1).asin())
dropped[grid](x, out := torch.empty_like(x), 1000, 0.5, 7, size=256)
assert 400 < (out != 0).sum() < 600
check(dropped, out, torch.where(out != 0, 2 * x, 0.0))
total[grid](x, out := torch.zeros(1), 1000, size=256)
check(total, out, x.sum().reshape(1), atol=1e-4)
running_sum[(1,)](x, out := torch.empty(512), size=512)
check(running_sum, out, x[:512].cumsum(0), atol=1e-4)
ordered[(1,)](x, out := torch.empty(512), size=512)
check(ordered, out, x[:512].sort().values)

rows = torch.randn(7, 200)
row_weights[(7,)](rows, out := torch.empty_like(rows), 200, 200, size=256)
check(row_weights, out, rows.softmax(-1))
w, b = torch.randn(200), torch.randn(200)
brain = rows.bfloat16()
rms[(7,)](brain, w, out := torch.empty_like(brain), inverse := torch.empty(7), 200, 1e-6, size=256)
scale = (brain.float().square().mean(-1) + 1e-6).rsqrt()
torch.testing.assert_close(inverse, scale)
check(rms, out, brain.float() * scale[:, None] * w, 1e-2, 1e-2)
centred[(7,)](rows, w, b, out := torch.empty_like(rows), 200, 1e-5, size=256)
check(centred, out, torch.nn.functional.layer_norm(rows, (200,), w, b))
surprise[(7,)](rows, target := torch.randint(0, 200, (7,)), out := torch.empty(7), 200, size=256)
check(surprise, out, torch.nn.functional.cross_entropy(rows, target, reduction="none"))
turned[(1, 7)](rows, out := torch.empty(200, 7), 7, 200, size=32)
check(turned, out, rows.T)
column_means[(4,)](rows, out := torch.empty(200), 7, 200, size=4, width=64)
check(column_means, out, rows.mean(0))
highest[(7,)](wide := torch.randn(7, 256), out := torch.empty(7, dtype=torch.int32), columns=256)
check(highest, out, wide.argmax(-1))
picked[(5,)](wide, index := torch.tensor([3, 0, 6, 6, 1]), out := torch.empty(5, 256), width=256)
check(picked, out, wide[index])
counts[(2,)](bins := torch.randint(0, 16, (512,), dtype=torch.int32), out := torch.zeros(16).int(), 256, 16)
check(counts, out, torch.bincount(bins, minlength=16))
angle = torch.rand(7, 128)
rotated[(7,)](wide, angle.cos(), angle.sin(), out := torch.empty_like(wide), half=128)
first, second = wide.chunk(2, -1)
turn = (first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin())
check(rotated, out, torch.cat(turn, -1))

a, b = torch.randn(50, 70).half(), torch.randn(70, 40).half()
product[(2, 2)](a, b, out := torch.empty(50, 40), 50, 40, 70, rows=32, columns=32, depth=32)
check(product, out, a.float() @ b.float(), 1e-3, 1e-3)
q, k, v = torch.randn(3, 64, 32).half()
attention[(2,)](q, k, v, out := torch.empty(64, 32), 64, 32**-0.5, rows=32, tile=32, width=32)
masked = (q.float() @ k.float().T * 32**-0.5).masked_fill(torch.ones(64, 64).triu(1).bool(), -torch.inf)
check(attention, out, masked.softmax(-1) @ v.float(), 1e-2, 1e-2)
decay, drive = torch.rand(2, 64, 3), torch.randn(2, 64, 3)
recurrence[(2, 3)](decay, drive, out := torch.empty_like(drive), 64, 3, steps=64)
state, states = torch.zeros(2, 3), []
for step in range(64):
    state = decay[:, step] * state + drive[:, step]
    states.append(state)
check(recurrence, out, torch.stack(states, 1), 1e-4, 1e-4)
