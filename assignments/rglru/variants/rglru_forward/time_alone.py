"""RG-LRU forward by programs with one channel of one sequence, whose tiles are of time alone."""

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
def one_channel(h, x, gx, ga, c, h0, length, width, started: tl.constexpr, steps: tl.constexpr):
    channel = tl.program_id(0)
    sequence = tl.program_id(1).to(tl.int64)
    slope = 8.0 * softplus(tl.load(c + channel))
    carry = 0.0
    if started:
        carry = tl.load(h0 + sequence * width + channel)
    index = tl.arange(0, steps)
    for first in range(0, length, steps):
        inside = first + index < length
        at = (sequence * length + first + index) * width + channel
        d = slope * sigmoid(tl.load(ga + at, mask=inside, other=0.0).to(tl.float32))
        gate = sigmoid(tl.load(gx + at, mask=inside, other=0.0).to(tl.float32))
        value = gate * tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        factor = tl.exp(-d)
        value = tl.sqrt_rn(-libdevice.expm1(-2.0 * d)) * value + tl.where(index == 0, factor * carry, 0.0)
        _product, state = tl.associative_scan((factor, value), 0, compose)
        tl.store(h + at, state, mask=inside)
        carry = tl.sum(tl.where(index == steps - 1, state, 0.0), axis=0)


def rglru_forward(h, x, gx, ga, c, h0):
    batch, length, width = h.shape
    started, grid = h0 is not None, (width, batch)
    one_channel[grid](h, x, gx, ga, c, h0 if started else c, length, width, started, STEPS, num_warps=2)
