"""A linear recurrence over time and the RG-LRU built on it in Triton, in float32, float16 and bfloat16.

    linear scan   h_t = a_t h_{t-1} + b_t
    RG-LRU        i = sigmoid(gx),  r = sigmoid(ga),  d = 8 r softplus(C),  a = exp(-d),  s = sqrt(1 - a^2)
                  h_t = a_t h_{t-1} + s_t i_t x_t
    backward      g_t = dh_t + a_{t+1} g_{t+1}, the whole gradient of h_t
                  dx = g s i,  dgx = g s x i (1 - i),  q = g (d a h_{t-1} - i x a^2 d / s)
                  dga = -(1 - r) q,  dC = -sum(q) sigmoid(C) / softplus(C),  dh0 = a_1 g_1

A program has some channels of one sequence, and goes through time in tiles. Within a tile steps are combined
by an associative scan; what it ends with is carried on.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

TILE = 1024  # steps times channels
CHANNELS = 32  # at most


@triton.jit
def sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def decay(ga, slope):
    """D, a and s of gates before the sigmoid."""
    d = 8.0 * sigmoid(ga) * slope
    return d, tl.exp(-d), tl.sqrt_rn(-libdevice.expm1(-2.0 * d))


@triton.jit
def compose(factor, value, next_factor, next_value):
    return factor * next_factor, next_factor * value + next_value


@triton.jit
def carried(factor, value, carry, time, last, reverse: tl.constexpr):
    """The states of a tile, and the one at the step ``last``."""
    product, total = tl.associative_scan((factor, value), 0, compose, reverse=reverse)
    state = product * carry[None, :] + total
    return state, tl.sum(tl.where(time[:, None] == last, state, 0.0), axis=0)


@triton.jit
def scan_forward(
    h, a, b, h0, length, width, started: tl.constexpr, steps: tl.constexpr, channels: tl.constexpr
):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    sequence = tl.program_id(1).to(tl.int64)
    carry = tl.zeros((channels,), tl.float32)
    if started:
        carry = tl.load(h0 + sequence * width + channel, mask=channel < width, other=0.0)
    for first in range(0, length, steps):
        time = first + tl.arange(0, steps)
        inside = (time < length)[:, None] & (channel < width)[None, :]
        at = (sequence * length + time)[:, None] * width + channel[None, :]
        factor = tl.load(a + at, mask=inside, other=1.0).to(tl.float32)
        value = tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
        state, carry = carried(factor, value, carry, time, first + steps - 1, False)
        tl.store(h + at, state, mask=inside)


@triton.jit
def forward(
    h, x, gx, ga, c, h0, length, width, started: tl.constexpr, steps: tl.constexpr, channels: tl.constexpr
):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    sequence = tl.program_id(1).to(tl.int64)
    slope = libdevice.log1p(tl.exp(tl.load(c + channel, mask=channel < width, other=0.0)))[None, :]
    carry = tl.zeros((channels,), tl.float32)
    if started:
        carry = tl.load(h0 + sequence * width + channel, mask=channel < width, other=0.0)
    for first in range(0, length, steps):
        time = first + tl.arange(0, steps)
        inside = (time < length)[:, None] & (channel < width)[None, :]
        at = (sequence * length + time)[:, None] * width + channel[None, :]
        _d, a, s = decay(tl.load(ga + at, mask=inside, other=0.0).to(tl.float32), slope)
        gate = sigmoid(tl.load(gx + at, mask=inside, other=0.0).to(tl.float32))
        value = s * gate * tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        factor = tl.where(inside, a, 1.0)  # what lies behind the end carries the state on
        state, carry = carried(factor, tl.where(inside, value, 0.0), carry, time, first + steps - 1, False)
        tl.store(h + at, state, mask=inside)


@triton.jit
def backward(
    dx, dgx, dga, parts, dh0, dh, x, gx, ga, c, h, h0, length, width, started: tl.constexpr,
    steps: tl.constexpr, channels: tl.constexpr,
):  # fmt: skip
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    sequence = tl.program_id(1).to(tl.int64)
    there = channel < width
    slope = libdevice.log1p(tl.exp(tl.load(c + channel, mask=there, other=0.0)))[None, :]
    carry = tl.zeros((channels,), tl.float32)
    part = tl.zeros((channels,), tl.float32)
    tiles = tl.cdiv(length, steps)
    for tile in range(tiles):
        first = (tiles - 1 - tile) * steps
        time = first + tl.arange(0, steps)
        inside = (time < length)[:, None] & there[None, :]
        at = (sequence * length + time)[:, None] * width + channel[None, :]
        later = (time + 1 < length)[:, None] & there[None, :]
        _d, factor, _s = decay(tl.load(ga + at + width, mask=later, other=0.0).to(tl.float32), slope)
        upstream = tl.load(dh + at, mask=inside, other=0.0).to(tl.float32)
        g, carry = carried(tl.where(later, factor, 0.0), upstream, carry, time, first, True)
        gated = tl.load(ga + at, mask=inside, other=0.0).to(tl.float32)
        d, a, s = decay(gated, slope)
        opened = tl.load(gx + at, mask=inside, other=0.0).to(tl.float32)
        i = sigmoid(opened)
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        before = tl.load(h + at - width, mask=inside & (time > 0)[:, None], other=0.0).to(tl.float32)
        if started:
            start = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
            before = tl.where((time == 0)[:, None], start[None, :], before)
        ratio = tl.where(d > 0.0, d / s, 0.0)
        q = tl.where(inside, g * (d * a * before - i * value * a * a * ratio), 0.0)
        tl.store(dx + at, g * s * i, mask=inside)
        tl.store(dgx + at, g * s * value * i * sigmoid(-opened), mask=inside)
        tl.store(dga + at, -sigmoid(-gated) * q, mask=inside)
        part += tl.sum(q, axis=0)
    _d, a, _s = decay(
        tl.load(ga + sequence * length * width + channel, mask=there, other=0.0).to(tl.float32)[None, :],
        slope,
    )
    tl.store(dh0 + sequence * width + channel, tl.sum(a, axis=0) * carry, mask=there)
    tl.store(parts + sequence * width + channel, part, mask=there)


@triton.jit
def add_up(dc, parts, c, batch, width, tall: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    total = tl.zeros((channels,), tl.float32)
    for first in range(0, batch, tall):
        sequence = first + tl.arange(0, tall)
        inside = (sequence < batch)[:, None] & (channel < width)[None, :]
        at = sequence[:, None] * width + channel[None, :]
        total += tl.sum(tl.load(parts + at, mask=inside, other=0.0), axis=0)
    value = tl.load(c + channel, mask=channel < width, other=0.0)
    ratio = sigmoid(value) / libdevice.log1p(tl.exp(value))
    tl.store(dc + channel, -total * ratio, mask=channel < width)


def linear_scan(h, a, b, h0):
    _batch, length, width = h.shape
    started, (steps, channels), grid = h0 is not None, tile(width), programs(h)
    scan_forward[grid](h, a, b, h0 if started else h, length, width, started, steps, channels)


def rglru_forward(h, x, gx, ga, c, h0):
    _batch, length, width = h.shape
    started, (steps, channels), grid = h0 is not None, tile(width), programs(h)
    forward[grid](h, x, gx, ga, c, h0 if started else c, length, width, started, steps, channels)


def rglru_backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0):
    batch, length, width = x.shape
    started, (steps, channels), grid = h0 is not None, tile(width), programs(x)
    parts = torch.empty((batch, width), dtype=torch.float32, device=x.device)
    backward[grid](
        dx, dgx, dga, parts, dh0, dh, x, gx, ga, c, h, h0 if started else c, length, width, started, steps,
        channels,
    )  # fmt: skip
    add_up[(triton.cdiv(width, CHANNELS),)](dc, parts, c, batch, width, 32, CHANNELS)


def tile(width):
    """Steps and channels of a program's tile."""
    channels = min(CHANNELS, triton.next_power_of_2(width))
    return TILE // channels, channels


def programs(sequences):
    """Of the channels along x, and of the sequences along y."""
    batch, _length, width = sequences.shape
    return triton.cdiv(width, tile(width)[1]), batch
