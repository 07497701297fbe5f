"""RG-LRU forward by two kernels: one makes the factors and terms of a linear scan, one scans."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

SIZE, STEPS, CHANNELS = 512, 64, 16


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
def terms(a, b, x, gx, ga, c, elements, width, size: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * size + tl.arange(0, size)
    inside = at < elements
    slope = 8.0 * softplus(tl.load(c + at % width, mask=inside, other=0.0))
    d = slope * sigmoid(tl.load(ga + at, mask=inside, other=0.0).to(tl.float32))
    gate = sigmoid(tl.load(gx + at, mask=inside, other=0.0).to(tl.float32))
    value = gate * tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(a + at, tl.exp(-d), mask=inside)
    tl.store(b + at, tl.sqrt_rn(-libdevice.expm1(-2.0 * d)) * value, mask=inside)


@triton.jit
def scan(h, a, b, h0, length, width, started: tl.constexpr, steps: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    sequence = tl.program_id(1).to(tl.int64)
    carry = tl.zeros((channels,), tl.float32)
    if started:
        carry = tl.load(h0 + sequence * width + channel, mask=channel < width, other=0.0)
    index = tl.arange(0, steps)[:, None]
    for first in range(0, length, steps):
        inside = (first + index < length) & (channel < width)[None, :]
        at = (sequence * length + first + index) * width + channel[None, :]
        factor = tl.load(a + at, mask=inside, other=1.0)
        value = tl.load(b + at, mask=inside, other=0.0)
        value += tl.where(index == 0, factor * carry[None, :], 0.0)
        _product, state = tl.associative_scan((factor, value), 0, compose)
        tl.store(h + at, state, mask=inside)
        carry = tl.sum(tl.where(index == steps - 1, state, 0.0), axis=0)


def rglru_forward(h, x, gx, ga, c, h0):
    batch, length, width = h.shape
    a, b = (torch.empty(h.shape, dtype=torch.float32, device=h.device) for _ in range(2))
    elements, started = batch * length * width, h0 is not None
    terms[(triton.cdiv(elements, SIZE),)](a, b, x, gx, ga, c, elements, width, SIZE)
    grid = (triton.cdiv(width, CHANNELS), batch)
    scan[grid](h, a, b, h0 if started else c, length, width, started, STEPS, CHANNELS)
