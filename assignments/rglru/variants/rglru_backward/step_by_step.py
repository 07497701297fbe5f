"""RG-LRU backward one step after the other, from the last to the first; atomic operations add up dC."""

import triton
import triton.language as tl
from triton.language.extra import libdevice

CHANNELS = 64


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def softplus(c):
    return tl.where(c > 20.0, c, libdevice.log1p(tl.exp(c)))


@triton.jit
def steps(
    dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0, length, width, started: tl.constexpr,
    channels: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    parameter = tl.load(c + channel, mask=there, other=0.0)
    slope = softplus(parameter)
    start = tl.zeros((channels,), tl.float32)
    if started:
        start = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    carried = tl.zeros((channels,), tl.float32)  # a g of the step behind
    total = tl.zeros((channels,), tl.float32)
    for index in range(length):
        time = length - 1 - index
        at = (sequence * length + time) * width + channel
        gated = tl.load(ga + at, mask=there, other=0.0).to(tl.float32)
        opened = tl.load(gx + at, mask=there, other=0.0).to(tl.float32)
        value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
        before = tl.load(h + at - width, mask=there & (time > 0), other=0.0).to(tl.float32)
        before = tl.where(time > 0, before, start)
        i, d = sigmoid(opened), 8.0 * sigmoid(gated) * slope
        a, s = tl.exp(-d), tl.sqrt_rn(-libdevice.expm1(-2.0 * d))
        g = tl.load(dh + at, mask=there, other=0.0).to(tl.float32) + carried
        ratio = tl.where(d > 0.0, d / s, 0.0)
        q = g * (d * a * before - i * value * a * a * ratio)
        tl.store(dx + at, g * s * i, mask=there)
        tl.store(dgx + at, g * s * value * i * sigmoid(-opened), mask=there)
        tl.store(dga + at, -sigmoid(-gated) * q, mask=there)
        carried = a * g
        total += q
    tl.store(dh0 + sequence * width + channel, carried, mask=there)
    tl.atomic_add(dc + channel, -total * sigmoid(parameter) / slope, mask=there)


def rglru_backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0):
    batch, length, width = x.shape
    started, grid = h0 is not None, (triton.cdiv(width, CHANNELS), batch)
    first = h0 if started else c
    dc.zero_()
    steps[grid](
        dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, first, length, width, started, CHANNELS, num_warps=2
    )  # fmt: skip
