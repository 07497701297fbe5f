"""RG-LRU backward by programs with one channel of one sequence; their tiles are of time, turned round."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

STEPS = 256


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def softplus(c):
    return tl.where(c > 20.0, c, libdevice.log1p(tl.exp(c)))


@triton.jit
def compose(factor, value, next_factor, next_value):
    return factor * next_factor, next_factor * value + next_value


@triton.jit
def one_channel(
    dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, length, width, started: tl.constexpr, steps: tl.constexpr
):  # fmt: skip
    channel = tl.program_id(0)
    sequence = tl.program_id(1).to(tl.int64)
    parameter = tl.load(c + channel)
    slope = softplus(parameter)
    start = 0.0
    if started:
        start = tl.load(h0 + sequence * width + channel)
    index = tl.arange(0, steps)
    carry, total = 0.0, 0.0
    for first in range(0, length, steps):
        time = length - 1 - first - index  # the last step comes first
        inside = time >= 0
        at = (sequence * length + time) * width + channel
        behind = inside & (time + 1 < length)
        next_gate = sigmoid(tl.load(ga + at + width, mask=behind, other=0.0).to(tl.float32))
        factor = tl.where(behind, tl.exp(-8.0 * next_gate * slope), tl.where(inside, 0.0, 1.0))
        g = tl.load(dh + at, mask=inside, other=0.0).to(tl.float32)
        g += tl.where(index == 0, factor * carry, 0.0)
        _product, g = tl.associative_scan((factor, g), 0, compose)
        carry = tl.sum(tl.where(index == steps - 1, g, 0.0), axis=0)
        gated = tl.load(ga + at, mask=inside, other=0.0).to(tl.float32)
        opened = tl.load(gx + at, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        before = tl.load(h + at - width, mask=time > 0, other=0.0).to(tl.float32)
        before = tl.where(time == 0, start, before)
        d = 8.0 * sigmoid(gated) * slope
        i, a, s = sigmoid(opened), tl.exp(-d), tl.sqrt_rn(-libdevice.expm1(-2.0 * d))
        q = g * (d * a * before - i * value * a * a * tl.where(d > 0.0, d / s, 0.0))
        tl.store(dx + at, g * s * i, mask=inside)
        tl.store(dgx + at, g * s * value * i * sigmoid(-opened), mask=inside)
        tl.store(dga + at, -sigmoid(-gated) * q, mask=inside)
        total += tl.sum(tl.where(inside, q, 0.0), axis=0)
    gate = sigmoid(tl.load(ga + sequence * length * width + channel).to(tl.float32))
    tl.store(dh0 + sequence * width + channel, tl.exp(-8.0 * gate * slope) * carry)
    tl.atomic_add(dc + channel, -total * sigmoid(parameter) / slope)


def rglru_backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0):
    batch, length, width = x.shape
    started = h0 is not None
    first = h0 if started else c
    dc.zero_()
    one_channel[(width, batch)](
        dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, first, length, width, started, STEPS, num_warps=2
    )  # fmt: skip
