"""RG-LRU forward one step after the other, by programs with some channels of one sequence."""

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
def steps(h, x, gx, ga, c, h0, length, width, started: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    slope = 8.0 * softplus(tl.load(c + channel, mask=there, other=0.0))
    state = tl.zeros((channels,), tl.float32)
    if started:
        state = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    for time in range(length):
        at = (sequence * length + time) * width + channel
        d = slope * sigmoid(tl.load(ga + at, mask=there, other=0.0).to(tl.float32))
        root = tl.sqrt_rn(-libdevice.expm1(-2.0 * d))
        gate = sigmoid(tl.load(gx + at, mask=there, other=0.0).to(tl.float32))
        value = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
        state = tl.exp(-d) * state + root * gate * value
        tl.store(h + at, state, mask=there)


def rglru_forward(h, x, gx, ga, c, h0):
    batch, length, width = h.shape
    started, grid = h0 is not None, (triton.cdiv(width, CHANNELS), batch)
    steps[grid](h, x, gx, ga, c, h0 if started else c, length, width, started, CHANNELS, num_warps=2)
