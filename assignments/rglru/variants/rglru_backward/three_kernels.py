"""RG-LRU backward by three kernels: for the gradients of states, for those of elements, and for dC."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

CHANNELS, SIZE, TALL = 64, 256, 64


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def softplus(c):
    return tl.where(c > 20.0, c, libdevice.log1p(tl.exp(c)))


@triton.jit
def of_states(g, dh0, dh, ga, c, length, width, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    slope = 8.0 * softplus(tl.load(c + channel, mask=there, other=0.0))
    carried = tl.zeros((channels,), tl.float32)
    for index in range(length):
        at = (sequence * length + length - 1 - index) * width + channel
        whole = tl.load(dh + at, mask=there, other=0.0).to(tl.float32) + carried
        tl.store(g + at, whole, mask=there)
        carried = whole * tl.exp(-slope * sigmoid(tl.load(ga + at, mask=there, other=0.0).to(tl.float32)))
    tl.store(dh0 + sequence * width + channel, carried, mask=there)


@triton.jit
def of_elements(
    dx, dgx, dga, q, g, x, gx, ga, c, h, h0, elements, length, width, started: tl.constexpr,
    size: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < elements
    channel, step = at % width, at // width
    begins = step % length == 0
    gated = tl.load(ga + at, mask=inside, other=0.0).to(tl.float32)
    opened = tl.load(gx + at, mask=inside, other=0.0).to(tl.float32)
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    before = tl.load(h + at - width, mask=inside & (begins == 0), other=0.0).to(tl.float32)
    if started:
        start = tl.load(h0 + step // length * width + channel, mask=inside & begins, other=0.0)
        before = tl.where(begins, start, before)
    whole = tl.load(g + at, mask=inside, other=0.0)
    d = 8.0 * sigmoid(gated) * softplus(tl.load(c + channel, mask=inside, other=0.0))
    i, a, s = sigmoid(opened), tl.exp(-d), tl.sqrt_rn(-libdevice.expm1(-2.0 * d))
    part = whole * (d * a * before - i * value * a * a * tl.where(d > 0.0, d / s, 0.0))
    tl.store(dx + at, whole * s * i, mask=inside)
    tl.store(dgx + at, whole * s * value * i * sigmoid(-opened), mask=inside)
    tl.store(dga + at, -sigmoid(-gated) * part, mask=inside)
    tl.store(q + at, part, mask=inside)


@triton.jit
def of_parameters(dc, q, c, steps, width, tall: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    total = tl.zeros((tall, channels), tl.float32)
    for first in range(0, steps, tall):
        step = first + tl.arange(0, tall)
        at = step.to(tl.int64)[:, None] * width + channel[None, :]
        total += tl.load(q + at, mask=(step < steps)[:, None] & there[None, :], other=0.0)
    parameter = tl.load(c + channel, mask=there, other=0.0)
    tl.store(dc + channel, -tl.sum(total, axis=0) * sigmoid(parameter) / softplus(parameter), mask=there)


def rglru_backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0):
    batch, length, width = x.shape
    elements, started = batch * length * width, h0 is not None
    g, q = (torch.empty(x.shape, dtype=torch.float32, device=x.device) for _ in range(2))
    slabs, first = triton.cdiv(width, CHANNELS), h0 if started else c
    of_states[(slabs, batch)](g, dh0, dh, ga, c, length, width, CHANNELS, num_warps=2)
    of_elements[(triton.cdiv(elements, SIZE),)](
        dx, dgx, dga, q, g, x, gx, ga, c, h, first, elements, length, width, started, SIZE
    )
    of_parameters[(slabs,)](dc, q, c, batch * length, width, TALL, CHANNELS)
