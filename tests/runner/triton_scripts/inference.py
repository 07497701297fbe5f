"""Kernels as libraries for inference have them; each is checked against PyTorch and says its name."""

import torch
import triton
import triton.language as tl

torch.set_default_device("cuda")

torch.manual_seed(0)


@triton.jit
def paged_attention(
    q, keys, values, pages, lengths, out, scale, most: tl.constexpr, page: tl.constexpr, width: tl.constexpr
):
    who, head, d = tl.program_id(0), tl.program_id(1), tl.arange(0, width)
    heads = tl.num_programs(1)
    query = tl.load(q + (who * heads + head) * width + d)
    length = tl.load(lengths + who)
    top, below, total = -float("inf"), 0.0, tl.zeros((width,), tl.float32)
    for number in range(tl.cdiv(length, page)):
        slot = tl.load(pages + who * most + number) * page + tl.arange(0, page)
        place = (slot[:, None] * heads + head) * width + d[None, :]
        mask = number * page + tl.arange(0, page) < length
        score = tl.sum(query[None, :] * tl.load(keys + place, mask=mask[:, None], other=0.0), axis=1) * scale
        score = tl.where(mask, score, -float("inf"))
        higher = tl.maximum(top, tl.max(score, axis=0))
        fade, weight = tl.exp(top - higher), tl.exp(score - higher)
        below = below * fade + tl.sum(weight, axis=0)
        value = tl.load(values + place, mask=mask[:, None], other=0.0)
        total = total * fade + tl.sum(weight[:, None] * value, axis=0)
        top = higher
    tl.store(out + (who * heads + head) * width + d, total / below)


@triton.jit
def cached_rows(new, slots, cache, width: tl.constexpr):
    slot = tl.load(slots + tl.program_id(0))
    if slot < 0:
        return
    at = tl.arange(0, width)
    tl.store(cache + slot * width + at, tl.load(new + tl.program_id(0) * width + at))


@triton.jit
def tile_of(matrix, i, j, rows, columns):
    mask = (i[:, None] < rows) & (j[None, :] < columns)
    return tl.load(matrix + i[:, None] * columns + j[None, :], mask=mask, other=0.0)


@triton.jit
def shared_product(a, b, c, m, n, k, tile: tl.constexpr, depth: tl.constexpr):
    i, j = tl.program_id(0) * tile + tl.arange(0, tile), tl.program_id(1) * tile + tl.arange(0, tile)
    total = tl.zeros((tile, tile), tl.float32)
    for start in range(tl.program_id(2) * depth, k, tl.num_programs(2) * depth):
        l = start + tl.arange(0, depth)  # noqa: E741
        total = tl.dot(tile_of(a, i, l, m, k), tile_of(b, l, j, k, n), total)
    tl.atomic_add(c + i[:, None] * n + j[None, :], total, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def persistent_product(a, b, c, m, n, k, tile: tl.constexpr, depth: tl.constexpr, group: tl.constexpr):
    down, across = tl.cdiv(m, tile), tl.cdiv(n, tile)
    for number in range(tl.program_id(0), down * across, tl.num_programs(0)):
        row, column = tl.swizzle2d(number // across, number % across, down, across, group)
        i, j = row * tile + tl.arange(0, tile), column * tile + tl.arange(0, tile)
        total = tl.zeros((tile, tile), tl.float32)
        for start in range(0, k, depth):
            l = start + tl.arange(0, depth)  # noqa: E741
            total = tl.dot(tile_of(a, i, l, m, k), tile_of(b, l, j, k, n), total)
        result = tl.where(total > 0, total, 0.01 * total)
        tl.store(c + i[:, None] * n + j[None, :], result, mask=(i[:, None] < m) & (j[None, :] < n))


@triton.jit
def expert_products(x, weight, begins, out, width: tl.constexpr, wide: tl.constexpr, tile: tl.constexpr):
    expert = tl.program_id(0)
    begin, end = tl.load(begins + expert), tl.load(begins + expert + 1)
    l, j = tl.arange(0, width), tl.arange(0, wide)  # noqa: E741
    right = tl.load(weight + (expert * width + l[:, None]) * wide + j[None, :])
    for start in range(begin, end, tile):
        i = start + tl.arange(0, tile)
        left = tl.load(x + i[:, None] * width + l[None, :], mask=i[:, None] < end, other=0.0)
        tl.store(out + i[:, None] * wide + j[None, :], tl.dot(left, right), mask=i[:, None] < end)


@triton.jit
def rounded_rows(x, out, scales, columns, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    value = tl.load(x + row * columns + at, mask=at < columns, other=0.0)
    scale = tl.max(tl.abs(value), axis=0) / 127
    whole = tl.floor(value / scale + 0.5)
    tl.store(out + row * columns + at, whole.to(tl.int8), mask=at < columns)
    tl.store(scales + row, scale)


@triton.jit
def whole_product(a, b, of_rows, of_columns, c, n, k: tl.constexpr, tile: tl.constexpr):
    i, j = tl.program_id(0) * tile + tl.arange(0, tile), tl.program_id(1) * tile + tl.arange(0, tile)
    l = tl.arange(0, k)  # noqa: E741
    total = tl.dot(tl.load(a + i[:, None] * k + l[None, :]), tl.load(b + j[None, :] * k + l[:, None]))
    scale = tl.load(of_rows + i)[:, None] * tl.load(of_columns + j)[None, :]
    tl.store(c + i[:, None] * n + j[None, :], total.to(tl.float32) * scale)


@triton.jit
def unpacked(packed, scales, out, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    two = tl.load(packed + row * size + at)
    pair = tl.interleave((two & 15).to(tl.float32) - 8, (two >> 4).to(tl.float32) - 8)
    tl.store(out + row * 2 * size + tl.arange(0, 2 * size), pair * tl.load(scales + row))


@triton.jit
def chosen_experts(x, numbers, shares, count: tl.constexpr, chosen: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, count)
    value = tl.load(x + row * count + at)
    weight = tl.exp(value - tl.max(value, axis=0))
    total = 0.0
    for n in tl.static_range(chosen):
        best = tl.argmax(weight, axis=0)
        share = tl.max(weight, axis=0)
        tl.store(numbers + row * chosen + n, best)
        tl.store(shares + row * chosen + n, share)
        total += share
        weight = tl.where(at == best, 0.0, weight)
    tl.debug_barrier()
    for n in tl.static_range(chosen):
        share = tl.load(shares + row * chosen + n)
        tl.store(shares + row * chosen + n, share / total)  # in place


@triton.jit
def scanned(x, step, a, b, c, out, length, width, tile: tl.constexpr, states: tl.constexpr):
    d, n = tl.program_id(1) * tile + tl.arange(0, tile), tl.arange(0, states)
    rate = -tl.exp(tl.load(a + d[:, None] * states + n[None, :]))
    state = tl.zeros((tile, states), tl.float32)
    for t in range(length):
        row = tl.program_id(0) * length + t
        change = tl.load(step + row * width + d)
        drive = (change * tl.load(x + row * width + d))[:, None] * tl.load(b + row * states + n)[None, :]
        state = tl.exp(change[:, None] * rate) * state + drive
        tl.store(out + row * width + d, tl.sum(state * tl.load(c + row * states + n)[None, :], axis=1))


@triton.jit
def convolved(x, weight, out, length, taps: tl.constexpr, size: tl.constexpr):
    channel, at = tl.program_id(0), tl.program_id(1) * size + tl.arange(0, size)
    total = tl.zeros((size,), tl.float32)
    for tap in tl.static_range(taps):
        before = at + tap - (taps - 1)
        value = tl.load(x + channel * length + before, mask=(before >= 0) & (before < length), other=0.0)
        total += value * tl.load(weight + channel * taps + tap)
    tl.store(out + channel * length + at, total, mask=at < length)


@triton.jit
def ragged_sums(x, begins, out, width: tl.constexpr, tile: tl.constexpr):
    begin, end = tl.load(begins + tl.program_id(0)), tl.load(begins + tl.program_id(0) + 1)
    d = tl.arange(0, width)
    total = tl.zeros((width,), tl.float32)
    while begin < end:
        i = begin + tl.arange(0, tile)
        row = tl.load(x + i[:, None] * width + d[None, :], mask=i[:, None] < end, other=0.0)
        total += tl.sum(row, axis=0)
        begin += tile
    tl.store(out + tl.program_id(0) * width + d, total)


@triton.jit
def linear_attention(q, k, v, out, length, tile: tl.constexpr, width: tl.constexpr):
    base = tl.program_id(0) * length * width
    d, step = tl.arange(0, width), tl.arange(0, tile)
    state = tl.zeros((width, width), tl.float32)
    for start in range(0, length, tile):
        place = base + (start + step)[:, None] * width + d[None, :]
        query, key, value = tl.load(q + place), tl.load(k + place), tl.load(v + place)
        score = tl.dot(query, tl.trans(key), input_precision="ieee")
        score = tl.where(step[:, None] >= step[None, :], score, 0.0)
        result = tl.dot(score, value, input_precision="ieee")
        tl.store(out + place, tl.dot(query, state, acc=result, input_precision="ieee"))
        state = tl.dot(tl.trans(key), value, acc=state, input_precision="ieee")


@triton.jit
def nearest_codes(x, codes, out, count, rows: tl.constexpr, tile: tl.constexpr, width: tl.constexpr):
    i, d = tl.program_id(0) * rows + tl.arange(0, rows), tl.arange(0, width)
    point = tl.load(x + i[:, None] * width + d[None, :])
    best, which = tl.full((rows,), float("inf"), tl.float32), tl.zeros((rows,), tl.int32)
    for start in range(0, count, tile):
        j = start + tl.arange(0, tile)
        code = tl.load(codes + j[None, :] * width + d[:, None])
        apart = tl.sum(code * code, axis=0)[None, :] - 2 * tl.dot(point, code, input_precision="ieee")
        nearest, where = tl.min(apart, axis=1, return_indices=True)
        which = tl.where(nearest < best, start + where, which)
        best = tl.minimum(best, nearest)
    tl.store(out + i, which)


@triton.jit
def chained_sum(x, out, sums, flags, size: tl.constexpr):
    number = tl.program_id(0)
    at = number * size + tl.arange(0, size)
    value = tl.load(x + at)
    before = 0.0
    if number > 0:
        while tl.atomic_add(flags + number - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(sums + number - 1)
    tl.store(out + at, before + tl.cumsum(value, 0))
    tl.store(sums + number, before + tl.sum(value, axis=0))
    tl.debug_barrier()
    tl.atomic_xchg(flags + number, 1, sem="release")


@triton.jit
def last_one_sums(x, parts, counter, out, size: tl.constexpr, programs: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    tl.store(parts + tl.program_id(0), tl.sum(tl.load(x + at), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1) == programs - 1:
        tl.store(out, tl.sum(tl.load(parts + tl.arange(0, programs)), axis=0))


@triton.jit
def drawn(x, out, seed, columns: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, columns)
    noise = -tl.log(-tl.log(tl.rand(seed, row * columns + at) * 0.999 + 0.0005))
    tl.store(out + row, tl.argmax(tl.load(x + row * columns + at) + noise, axis=0))


def check(kernel, got, expected, rtol=1e-5, atol=1e-5):
    torch.testing.assert_close(got, expected.to(got.dtype), rtol=rtol, atol=atol)
    print(kernel.fn.__name__)


q, keys, values = torch.randn(3, 2, 32), torch.randn(96, 2, 32), torch.randn(96, 2, 32)
pages, lengths = torch.tensor([[5, 2], [0, 1], [3, 4]]).int(), torch.tensor([20, 16, 7]).int()
shape = {"most": 2, "page": 16, "width": 32}
paged_attention[(3, 2)](q, keys, values, pages, lengths, out := torch.empty_like(q), 32**-0.5, **shape)
expected = []
for one, of_one, length in zip(q, pages, lengths, strict=True):
    key, value = (all_.view(6, 16, 2, 32)[of_one].flatten(0, 1)[:length] for all_ in (keys, values))
    weight = (torch.einsum("hd,lhd->hl", one, key) * 32**-0.5).softmax(-1)
    expected.append(torch.einsum("hl,lhd->hd", weight, value))
check(paged_attention, out, torch.stack(expected))

new, slots = torch.randn(4, 64), torch.tensor([7, -1, 0, 3])
cached_rows[(4,)](new, slots, out := torch.zeros(8, 64), width=64)
check(cached_rows, out, torch.zeros(8, 64).index_copy(0, slots[[0, 2, 3]], new[[0, 2, 3]]))

a, b = torch.randn(50, 200).half(), torch.randn(200, 70).half()
shared_product[(2, 3, 3)](a, b, out := torch.zeros(50, 70), 50, 70, 200, tile=32, depth=32)
check(shared_product, out, a.float() @ b.float(), 1e-3, 1e-2)
persistent_product[(3,)](a, b, out := torch.empty(50, 70), 50, 70, 200, tile=32, depth=32, group=2)
check(persistent_product, out, torch.nn.functional.leaky_relu(a.float() @ b.float()), 1e-3, 1e-2)

x, weight, begins = torch.randn(30, 32).half(), torch.randn(3, 32, 64).half(), torch.tensor([0, 11, 11, 30])
expert_products[(3,)](x, weight, begins, out := torch.empty(30, 64), width=32, wide=64, tile=16)
expected = [x[begins[n] : begins[n + 1]].float() @ weight[n].float() for n in range(3)]
check(expert_products, out, torch.cat(expected), 1e-3, 1e-2)

rows = torch.randn(32, 64)
whole, scales = torch.empty(32, 64, dtype=torch.int8), torch.empty(32)
rounded_rows[(32,)](rows, whole, scales, 64, size=64)
torch.testing.assert_close(scales, rows.abs().amax(-1) / 127)
check(rounded_rows, whole, (rows / scales[:, None] + 0.5).floor())
whole_product[(1, 1)](whole, whole, scales, scales, out := torch.empty(32, 32), 32, k=64, tile=32)
near = whole * scales[:, None]
check(whole_product, out, near @ near.T, 1e-4, 1e-4)
packed = torch.randint(0, 256, (5, 64), dtype=torch.uint8)
unpacked[(5,)](packed, scales, out := torch.empty(5, 128), size=64)
check(unpacked, out, (torch.stack((packed & 15, packed >> 4), -1).flatten(1).float() - 8) * scales[:5, None])

x = torch.randn(6, 16)
numbers, shares = torch.empty(6, 2, dtype=torch.int32), torch.empty(6, 2)
chosen_experts[(6,)](x, numbers, shares, count=16, chosen=2)
best = x.softmax(-1).topk(2)
torch.testing.assert_close(numbers, best.indices.int())
check(chosen_experts, shares, best.values / best.values.sum(-1, keepdim=True))

x, change, b, c = torch.randn(2, 10, 32), torch.rand(2, 10, 32), torch.randn(2, 10, 8), torch.randn(2, 10, 8)
a = torch.randn(32, 8)
scanned[(2, 2)](x, change, a, b, c, out := torch.empty_like(x), 10, 32, tile=16, states=8)
state, expected = torch.zeros(2, 32, 8), []
for t in range(10):
    state = (change[:, t, :, None] * -a.exp()).exp() * state + (change * x)[:, t, :, None] * b[:, t, None]
    expected.append((state * c[:, t, None]).sum(-1))
check(scanned, out, torch.stack(expected, 1), 1e-4, 1e-4)

x, weight = torch.randn(3, 100), torch.randn(3, 4)
convolved[(3, 2)](x, weight, out := torch.empty_like(x), 100, taps=4, size=64)
check(convolved, out, torch.nn.functional.conv1d(x[None], weight[:, None], padding=3, groups=3)[0, :, :100])

x, begins = torch.randn(20, 32), torch.tensor([0, 3, 3, 20])
ragged_sums[(3,)](x, begins, out := torch.empty(3, 32), width=32, tile=8)
check(ragged_sums, out, torch.stack([x[begins[n] : begins[n + 1]].sum(0) for n in range(3)]))

q, k, v = torch.randn(3, 2, 64, 16)
linear_attention[(2,)](q, k, v, out := torch.empty_like(q), 64, tile=16, width=16)
check(linear_attention, out, (q @ k.mT).tril() @ v, 1e-3, 1e-3)

x, codes = torch.randn(32, 16), torch.randn(64, 16)
nearest_codes[(2,)](x, codes, out := torch.empty(32, dtype=torch.int32), 64, rows=16, tile=32, width=16)
check(nearest_codes, out, torch.cdist(x, codes).argmin(-1))

x = torch.randn(1024)
chained_sum[(4,)](x, out := torch.empty(1024), torch.empty(4), torch.zeros(4, dtype=torch.int32), size=256)
check(chained_sum, out, x.cumsum(0), 1e-4, 1e-4)
counter = torch.zeros(1, dtype=torch.int32)
last_one_sums[(4,)](x, torch.empty(4), counter, out := torch.empty(1), size=256, programs=4)
check(last_one_sums, out, x.sum()[None], 1e-4, 1e-4)

x = torch.tensor([[0.0, 1.0, 2.0, -torch.inf]]).repeat(400, 1)
drawn[(400,)](x, out := torch.empty(400, dtype=torch.int32), 3, columns=4)
share = out.bincount(minlength=4) / 400
check(drawn, share, x[0].softmax(-1), 0, 0.1)
