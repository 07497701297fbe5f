"""Kernels as libraries for training have them; each is checked against PyTorch and says its name."""

import torch
import triton
import triton.language as tl

torch.set_default_device("cuda")

torch.manual_seed(0)


@triton.jit
def row_weights_backward(weight, grad, out, columns, size: tl.constexpr):
    at = tl.arange(0, size)
    place, mask = tl.program_id(0) * columns + at, at < columns
    w, g = tl.load(weight + place, mask=mask, other=0.0), tl.load(grad + place, mask=mask, other=0.0)
    tl.store(out + place, w * (g - tl.sum(w * g, axis=0)), mask=mask)


@triton.jit
def centred_backward(
    grad, x, weight, mean, inverse, out, parts, locks, columns, groups: tl.constexpr, size: tl.constexpr
):
    row, at = tl.program_id(0), tl.arange(0, size)
    mask = at < columns
    place = row * columns + at
    scaled = (tl.load(x + place, mask=mask, other=0.0) - tl.load(mean + row)) * tl.load(inverse + row)
    g = tl.load(grad + place, mask=mask, other=0.0)
    wg = g * tl.load(weight + at, mask=mask, other=0.0)
    scaled = tl.where(mask, scaled, 0.0)
    c1, c2 = tl.sum(scaled * wg, axis=0) / columns, tl.sum(wg, axis=0) / columns
    tl.store(out + place, (wg - (scaled * c1 + c2)) * tl.load(inverse + row), mask=mask)
    group = row % groups
    part, of_weight, of_bias = parts + 2 * group * columns + at, g * scaled, g
    while tl.atomic_cas(locks + group, 0, 1) == 1:
        pass
    begun = tl.load(locks + groups + group)
    tl.debug_barrier()  # every warp has read it before one changes it
    if begun == 0:
        tl.atomic_xchg(locks + groups + group, 1)
    else:
        of_weight += tl.load(part, mask=mask)
        of_bias += tl.load(part + columns, mask=mask)
    tl.store(part, of_weight, mask=mask)
    tl.store(part + columns, of_bias, mask=mask)
    tl.debug_barrier()
    tl.atomic_xchg(locks + group, 0)


@triton.jit
def surprise_in_place(x, target, loss, columns, scale, size: tl.constexpr):
    row = tl.program_id(0)
    x += row * columns
    wanted = tl.load(target + row)
    of_target = tl.load(x + wanted)
    top, below = -float("inf"), 0.0
    for start in range(0, columns, size):
        at = start + tl.arange(0, size)
        value = tl.load(x + at, mask=at < columns, other=-float("inf"))
        higher = tl.maximum(top, tl.max(value, axis=0))
        below = below * tl.exp(top - higher) + tl.sum(tl.exp(value - higher), axis=0)
        top = higher
    tl.debug_barrier()
    for start in range(0, columns, size):
        at = start + tl.arange(0, size)
        value = tl.load(x + at, mask=at < columns, other=-float("inf"))
        weight = tl.exp(value - top) / below
        tl.store(x + at, (weight - tl.where(at == wanted, 1.0, 0.0)) * scale, mask=at < columns)
    tl.store(loss + row, top + tl.log(below) - of_target)


@triton.jit
def gated_backward(grad, gate, up, columns, size: tl.constexpr):
    at = tl.arange(0, size)
    place, mask = tl.program_id(0) * columns + at, at < columns
    d = tl.load(grad + place, mask=mask, other=0.0)
    g, u = tl.load(gate + place, mask=mask, other=0.0), tl.load(up + place, mask=mask, other=0.0)
    s = tl.sigmoid(g)
    tl.store(gate + place, d * u * s * (1 + g * (1 - s)), mask=mask)
    tl.store(up + place, d * g * s, mask=mask)


@triton.jit
def divergence(x, target, loss, columns, size: tl.constexpr):
    total = 0.0
    row = tl.program_id(0)
    for start in range(0, columns, size):
        at = start + tl.arange(0, size)
        q = tl.load(target + row * columns + at, mask=at < columns, other=0.0)
        p = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
        total += tl.sum(tl.where(q > 0, q * (tl.log(tl.where(q > 0, q, 1.0)) - p), 0.0), axis=0)
    tl.store(loss + row, total)


@triton.jit
def grouped_norm(x, weight, bias, out, channels, area, eps, size: tl.constexpr, per: tl.constexpr):
    first = tl.program_id(1) * per
    base = (tl.program_id(0) * channels + first) * area
    total, square = 0.0, 0.0
    for start in range(0, per * area, size):
        at = start + tl.arange(0, size)
        value = tl.load(x + base + at, mask=at < per * area, other=0.0)
        total += tl.sum(value, axis=0)
        square += tl.sum(value * value, axis=0)
    mean = total / (per * area)
    scale = tl.rsqrt(square / (per * area) - mean * mean + eps)
    for channel in tl.static_range(per):
        w, b = tl.load(weight + first + channel) * scale, tl.load(bias + first + channel)
        for start in range(0, area, size):
            at = start + tl.arange(0, size)
            value = tl.load(x + base + channel * area + at, mask=at < area, other=0.0)
            tl.store(out + base + channel * area + at, (value - mean) * w + b, mask=at < area)


@triton.jit
def of_both(mean, square, count, other_mean, other_square, other_count):
    total = count + other_count
    share = tl.where(total == 0.0, 0.0, other_count / total)
    apart = other_mean - mean
    return mean + apart * share, square + other_square + apart * apart * count * share, total


@triton.jit
def batch_norm(x, running, seen, out, rows, columns, momentum, eps, size: tl.constexpr, width: tl.constexpr):
    i, j = tl.arange(0, size), tl.program_id(0) * width + tl.arange(0, width)
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    value = tl.load(x + i[:, None] * columns + j[None, :], mask=mask, other=0.0)
    mean, square, _ = tl.reduce((value, tl.zeros_like(value), mask.to(tl.float32)), 0, of_both)
    scaled = (value - mean[None, :]) * tl.rsqrt(square / rows + eps)[None, :]
    tl.store(out + i[:, None] * columns + j[None, :], scaled, mask=mask)
    old = tl.load(running + j, mask=j < columns)  # a tile smaller than the program, in place
    tl.store(running + j, old + momentum * (mean - old), mask=j < columns)
    tl.store(seen + tl.program_id(0), tl.load(seen + tl.program_id(0)) + 1)  # and a number


@triton.jit
def adam(x, grad, first, second, n, rate, step, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    mask = at < n
    g = tl.load(grad + at, mask=mask)
    m = 0.9 * tl.load(first + at, mask=mask) + 0.1 * g
    v = 0.999 * tl.load(second + at, mask=mask) + 0.001 * g * g
    tl.store(first + at, m, mask=mask)
    tl.store(second + at, v, mask=mask)
    m /= 1 - tl.exp2(step * -0.15200309344504997)  # 0.9 ** step
    v /= 1 - tl.exp2(step * -0.0014434168696687174)  # 0.999 ** step
    tl.store(x + at, tl.load(x + at, mask=mask) - rate * m / (tl.sqrt(v) + 1e-8), mask=mask)


@triton.jit
def added_rows(grad, index, table, width: tl.constexpr):
    at = tl.arange(0, width)
    row = tl.load(index + tl.program_id(0))
    tl.atomic_add(table + row * width + at, tl.load(grad + tl.program_id(0) * width + at), sem="relaxed")


@triton.jit
def attention_backward_keys(
    q, k, v, grad, below, delta, out, length, scale, tile: tl.constexpr, width: tl.constexpr
):
    j, d = tl.program_id(0) * tile + tl.arange(0, tile), tl.arange(0, width)
    place = j[:, None] * width + d[None, :]
    key, value = tl.load(k + place), tl.load(v + place)
    of_key, of_value = tl.zeros((tile, width), tl.float32), tl.zeros((tile, width), tl.float32)
    for start in range(tl.program_id(0) * tile, length, tile):
        i = start + tl.arange(0, tile)
        other = i[:, None] * width + d[None, :]
        query, g = tl.load(q + other), tl.load(grad + other)
        score = tl.dot(key, tl.trans(query)) * scale
        weight = tl.exp(score - tl.load(below + i)[None, :])
        weight = tl.where(i[None, :] >= j[:, None], weight, 0.0)
        of_value = tl.dot(weight.to(tl.float16), g, of_value)
        change = weight * (tl.dot(value, tl.trans(g)) - tl.load(delta + i)[None, :])
        of_key = tl.dot(change.to(tl.float16), query, of_key)
    tl.store(out + place, of_key * scale)
    tl.store(out + length * width + place, of_value)


def check(kernel, got, expected, rtol=1e-5, atol=1e-5):
    torch.testing.assert_close(got, expected.to(got.dtype), rtol=rtol, atol=atol)
    print(kernel.fn.__name__)


rows, grad = torch.randn(12, 200, requires_grad=True), torch.randn(12, 200)
weights = rows.softmax(-1)
(expected,) = torch.autograd.grad(weights, rows, grad)
row_weights_backward[(12,)](weights.detach(), grad, out := torch.empty(12, 200), 200, size=256)
check(row_weights_backward, out, expected)

w, b = torch.randn(200, requires_grad=True), torch.zeros(200, requires_grad=True)
result = torch.nn.functional.layer_norm(rows, (200,), w, b)
expected = torch.autograd.grad(result, (rows, w, b), grad)
plain = rows.detach()
mean, inverse = plain.mean(-1), (plain.var(-1, correction=0) + 1e-5).rsqrt()
out, parts, locks = torch.empty(12, 200), torch.empty(3, 2, 200), torch.zeros(6, dtype=torch.int32)
centred_backward[(12,)](grad, plain, w.detach(), mean, inverse, out, parts, locks, 200, groups=3, size=256)
torch.testing.assert_close(parts.sum(0), torch.stack(expected[1:]), rtol=1e-4, atol=1e-4)
check(centred_backward, out, expected[0], 1e-4, 1e-4)

target = torch.randint(0, 200, (12,))
of_rows = torch.nn.functional.cross_entropy(rows, target, reduction="none")
(expected,) = torch.autograd.grad(of_rows.mean(), rows)
surprise_in_place[(12,)](out := plain.clone(), target, loss := torch.empty(12), 200, 1 / 12, size=128)
torch.testing.assert_close(loss, of_rows.detach())
check(surprise_in_place, out, expected)

gate, up = (torch.randn(12, 200, requires_grad=True) for _ in range(2))
expected = torch.autograd.grad(torch.nn.functional.silu(gate) * up, (gate, up), grad)
of_gate, of_up = gate.detach().clone(), up.detach().clone()
gated_backward[(12,)](grad, of_gate, of_up, 200, size=256)
check(gated_backward, torch.stack((of_gate, of_up)), torch.stack(expected))

logarithms, chances = plain.log_softmax(-1), torch.randn(12, 200).softmax(-1)
divergence[(12,)](logarithms, chances, loss := torch.empty(12), 200, size=128)
check(divergence, loss, torch.nn.functional.kl_div(logarithms, chances, reduction="none").sum(-1))

image, w, b = torch.randn(2, 6, 9, 9), torch.randn(6), torch.randn(6)
grouped_norm[(2, 3)](image, w, b, out := torch.empty_like(image), 6, 81, 1e-5, size=64, per=2)
check(grouped_norm, out, torch.nn.functional.group_norm(image, 3, w, b), 1e-4, 1e-4)

running, seen = torch.randn(200), torch.zeros(13, dtype=torch.int32)
expected = running + 0.1 * (plain.mean(0) - running)
batch_norm[(13,)](plain, running, seen, out := torch.empty(12, 200), 12, 200, 0.1, 1e-5, size=16, width=16)
assert seen.eq(1).all()
torch.testing.assert_close(running, expected)
check(batch_norm, out, torch.nn.functional.batch_norm(plain, None, None, training=True), 1e-4, 1e-4)

x = torch.nn.Parameter(plain.clone())
x.grad = grad
optimiser = torch.optim.Adam([x], lr=0.01)
got, first, second = plain.clone(), torch.zeros(12, 200), torch.zeros(12, 200)
for step in (1, 2):
    optimiser.step()
    adam[(10,)](got, grad, first, second, 2400, 0.01, float(step), size=256)
check(adam, got, x.detach())

index = torch.randint(0, 5, (12,))
added_rows[(12,)](wide := torch.randn(12, 64), index, table := torch.zeros(5, 64), width=64)
check(added_rows, table, torch.zeros(5, 64).index_add(0, index, wide))

q, k, v = (torch.randn(64, 32).half().float().requires_grad_() for _ in range(3))
score = (q @ k.T * 32**-0.5).masked_fill(torch.ones(64, 64).triu(1).bool(), -torch.inf)
result, grad = score.softmax(-1) @ v, torch.randn(64, 32).half().float()
expected = torch.autograd.grad(result, (k, v), grad, retain_graph=True)
below, delta = score.logsumexp(-1).detach(), (result * grad).sum(-1).detach()
halves = (tensor.detach().half() for tensor in (q, k, v, grad))
got = torch.empty(2, 64, 32)
attention_backward_keys[(2,)](*halves, below, delta, got, 64, 32**-0.5, tile=32, width=32)
check(attention_backward_keys, got, torch.stack(expected), 1e-2, 1e-2)
