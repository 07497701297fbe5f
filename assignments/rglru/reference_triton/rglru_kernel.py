"""A linear recurrence over time and the RG-LRU built on it in Triton, in float32, float16 and bfloat16.

    linear scan   h_t = a_t h_{t-1} + b_t
    RG-LRU        i = sigmoid(gx),  r = sigmoid(ga),  d = 8 r softplus(C),  a = exp(-d),  s = sqrt(1 - a^2)
                  h_t = a_t h_{t-1} + s_t i_t x_t
    backward      g_t = dh_t + a_{t+1} g_{t+1}, the whole gradient of h_t
                  dx = g s i,  dgx = g s x i (1 - i),  q = g (d a h_{t-1} - i x a^2 d / s)
                  dga = -(1 - r) q,  dC = -sum(q) sigmoid(C) / softplus(C),  dh0 = a_1 g_1

A program has some channels of one sequence, and goes through time in tiles, backward from the end. A tile has
groups of neighbouring steps: a thread combines the steps of a group in its registers, an associative scan the
groups, and what the tile ends with is carried on. The next tile is on its way while one is computed with.
"""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

GROUPS = 16  # of a tile
FORWARD, BACKWARD = 8, 4  # steps of a group; backward has more arrays to keep in registers
CHANNELS = 32  # at most


@triton.jit
def sigmoid(x):
    return libdevice.fast_dividef(1.0, 1.0 + libdevice.fast_expf(-x))


@triton.jit
def decay(ga, slope):
    """D, a, 1 - a^2 and 1 / s of gates before the sigmoid; where a is 1, 1 / s is a large number."""
    d = sigmoid(ga) * slope
    a = libdevice.fast_expf(-d)
    # For small d the difference would lose digits: a polynomial through the Chebyshev nodes of [0, 1/4].
    near = ((((0.217051602 * d - 0.656211368) * d + 1.33241542) * d - 1.99997153) * d + 1.99999986) * d
    square = tl.where(d > 0.25, 1.0 - a * a, near)
    return d, a, square, tl.rsqrt(tl.maximum(square, 1e-37))


@triton.jit
def slope_of(c, channel, there):
    """D of an open gate."""
    return 8.0 * libdevice.log1p(tl.exp(tl.load(c + channel, mask=there, other=0.0)))[None, :]


@triton.jit
def load_steps(array, at, stride, left, there, other, steps: tl.constexpr):
    """Each step of all groups, which have ``left`` steps until time ends, and ``other`` behind them."""
    loaded = ()
    for s in tl.static_range(steps):
        inside = (s < left)[:, None] & there[None, :]
        loaded = loaded + (tl.load(array + s * stride + at, mask=inside, other=other),)
    return loaded


@triton.jit
def load_gated(x, gx, ga, tile, at, stride, left, there, steps: tl.constexpr):
    """Inputs and both gates of a tile: where time has ended a is 1 and nothing comes in."""
    return (
        load_steps(x + tile, at, stride, left, there, 0.0, steps),
        load_steps(gx + tile, at, stride, left, there, 0.0, steps),
        load_steps(ga + tile, at, stride, left, there, float("-inf"), steps),
    )


@triton.jit
def store_steps(array, at, stride, left, there, values, steps: tl.constexpr):
    for s in tl.static_range(steps):
        tl.store(array + s * stride + at, values[s], mask=(s < left)[:, None] & there[None, :])


@triton.jit
def compose(factor, value, _before, _value_before, next_factor, next_value, next_before, next_value_before):
    """Two runs of groups in a row: all of both, and all before the last group."""
    return (
        factor * next_factor,
        next_factor * value + next_value,
        factor * next_before,
        next_before * value + next_value_before,
    )


@triton.jit
def scan_tile(factors, values, carry, group, groups: tl.constexpr, steps: tl.constexpr):
    """The state at each step of all groups, and the last of all; ``carry`` is the state before the tile."""
    factor, value = factors[0].to(tl.float32), values[0].to(tl.float32)
    one, zero = tl.full(factor.shape, 1.0, tl.float32), tl.zeros(factor.shape, tl.float32)
    so_far = ((factor, value),)
    for s in tl.static_range(1, steps):
        step = factors[s].to(tl.float32)
        factor, value = factor * step, value * step + values[s].to(tl.float32)
        so_far = so_far + ((factor, value),)
    factor, value, factor_before, value_before = tl.associative_scan((factor, value, one, zero), 0, compose)
    before = factor_before * carry[None, :] + value_before
    last = tl.where((group == groups - 1)[:, None], factor * carry[None, :] + value, 0.0)
    states = ()
    for s in tl.static_range(steps):
        states = states + (so_far[s][0] * before + so_far[s][1],)
    return states, tl.sum(last, axis=0)


@triton.jit
def scan_forward(
    h, a, b, h0, length, width, started: tl.constexpr, groups: tl.constexpr, steps: tl.constexpr,
    channels: tl.constexpr,
):  # fmt: skip
    group, channel = tl.arange(0, groups), tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    carry = tl.zeros((channels,), tl.float32)
    if started:
        carry = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    at = (group * steps)[:, None] * width + channel[None, :]
    tile, left = sequence * length * width, length - group * steps
    factors = load_steps(a + tile, at, width, left, there, 1.0, steps)
    values = load_steps(b + tile, at, width, left, there, 0.0, steps)
    for first in range(0, length, groups * steps):
        ahead = first + groups * steps
        tile, left = (sequence * length + ahead) * width, length - ahead - group * steps
        next_factors = load_steps(a + tile, at, width, left, there, 1.0, steps)
        next_values = load_steps(b + tile, at, width, left, there, 0.0, steps)
        states, carry = scan_tile(factors, values, carry, group, groups, steps)
        tile, left = (sequence * length + first) * width, length - first - group * steps
        store_steps(h + tile, at, width, left, there, states, steps)
        factors, values = next_factors, next_values


@triton.jit
def forward(
    h, x, gx, ga, c, h0, length, width, started: tl.constexpr, groups: tl.constexpr, steps: tl.constexpr,
    channels: tl.constexpr,
):  # fmt: skip
    group, channel = tl.arange(0, groups), tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    slope = slope_of(c, channel, there)
    carry = tl.zeros((channels,), tl.float32)
    if started:
        carry = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    at = (group * steps)[:, None] * width + channel[None, :]
    tile, left = sequence * length * width, length - group * steps
    xs, gxs, gas = load_gated(x, gx, ga, tile, at, width, left, there, steps)
    for first in range(0, length, groups * steps):
        ahead = first + groups * steps
        tile, left = (sequence * length + ahead) * width, length - ahead - group * steps
        next_xs, next_gxs, next_gas = load_gated(x, gx, ga, tile, at, width, left, there, steps)
        factors, values = (), ()
        for s in tl.static_range(steps):
            _d, a, square, inverse = decay(gas[s].to(tl.float32), slope)
            i, value = sigmoid(gxs[s].to(tl.float32)), xs[s].to(tl.float32)
            factors, values = factors + (a,), values + (square * inverse * i * value,)
        states, carry = scan_tile(factors, values, carry, group, groups, steps)
        tile, left = (sequence * length + first) * width, length - first - group * steps
        store_steps(h + tile, at, width, left, there, states, steps)
        xs, gxs, gas = next_xs, next_gxs, next_gas


@triton.jit
def backward(
    dx, dgx, dga, parts, dh0, dh, x, gx, ga, c, h, h0, length, width, started: tl.constexpr,
    groups: tl.constexpr, steps: tl.constexpr, channels: tl.constexpr,
):  # fmt: skip
    group, channel = tl.arange(0, groups), tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    slope = slope_of(c, channel, there)
    carry, start = tl.zeros((channels,), tl.float32), tl.zeros((channels,), tl.float32)
    if started:
        start = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    lost = tl.zeros((groups, channels), tl.float32)
    at = channel[None, :] - (group * steps)[:, None] * width
    tile, left = (sequence * length + length - 1) * width, length - group * steps
    dhs = load_steps(dh + tile, at, -width, left, there, 0.0, steps)
    xs, gxs, gas = load_gated(x, gx, ga, tile, at, -width, left, there, steps)
    for first in range(0, length, groups * steps):
        ahead = first + groups * steps
        tile, left = (sequence * length + length - 1 - ahead) * width, length - ahead - group * steps
        next_dhs = load_steps(dh + tile, at, -width, left, there, 0.0, steps)
        next_xs, next_gxs, next_gas = load_gated(x, gx, ga, tile, at, -width, left, there, steps)
        tile, left = (sequence * length + length - 1 - first) * width, length - first - group * steps
        earlier = load_steps(h + tile - width, at, -width, left - 1, there, 0.0, steps)
        known = (left >= 0)[:, None] & (left < length)[:, None] & there[None, :]
        later = tl.load(ga + tile + width + at, mask=known, other=float("-inf"))
        _d, a, _square, _inverse = decay(later.to(tl.float32), slope)
        factors = ()
        for s in tl.static_range(steps):
            # a_{t+1}, and 1 before the first step: there the gradient stays what it is.
            factors = factors + (tl.where((s < left)[:, None], a, 1.0),)
            _d, a, _square, _inverse = decay(gas[s].to(tl.float32), slope)
        gs, carry = scan_tile(factors, dhs, carry, group, groups, steps)
        dxs, dgxs, dgas = (), (), ()
        for s in tl.static_range(steps):
            gated, opened, value = gas[s].to(tl.float32), gxs[s].to(tl.float32), xs[s].to(tl.float32)
            d, a, square, inverse = decay(gated, slope)
            state = earlier[s].to(tl.float32)
            if started:
                state = tl.where((s + 1 == left)[:, None], start[None, :], state)
            i = sigmoid(opened)
            through = gs[s] * square * inverse * i
            q = gs[s] * d * a * (state - i * value * a * inverse)
            lost += q
            dxs, dgxs = dxs + (through,), dgxs + (through * value * sigmoid(-opened),)
            dgas = dgas + (-sigmoid(-gated) * q,)
        store_steps(dx + tile, at, -width, left, there, dxs, steps)
        store_steps(dgx + tile, at, -width, left, there, dgxs, steps)
        store_steps(dga + tile, at, -width, left, there, dgas, steps)
        dhs, gas, xs, gxs = next_dhs, next_gas, next_xs, next_gxs
    first_gate = tl.load(ga + sequence * length * width + channel, mask=there, other=0.0).to(tl.float32)
    _d, a, _square, _inverse = decay(first_gate[None, :], slope)
    tl.store(dh0 + sequence * width + channel, tl.sum(a, axis=0) * carry, mask=there)
    tl.store(parts + sequence * width + channel, tl.sum(lost, axis=0), mask=there)


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
    started, channels, grid = h0 is not None, channels_of(width), programs(h)
    scan_forward[grid](h, a, b, h0 if started else h, length, width, started, GROUPS, FORWARD, channels)


def rglru_forward(h, x, gx, ga, c, h0):
    _batch, length, width = h.shape
    started, channels, grid = h0 is not None, channels_of(width), programs(h)
    forward[grid](h, x, gx, ga, c, h0 if started else c, length, width, started, GROUPS, FORWARD, channels)


def rglru_backward(dx, dgx, dga, dc, dh0, dh, x, gx, ga, c, h, h0):
    batch, length, width = x.shape
    started, channels, grid = h0 is not None, channels_of(width), programs(x)
    parts = torch.empty((batch, width), dtype=torch.float32, device=x.device)
    backward[grid](
        dx, dgx, dga, parts, dh0, dh, x, gx, ga, c, h, h0 if started else c, length, width, started, GROUPS,
        BACKWARD, channels, num_warps=8,
    )  # fmt: skip
    add_up[(triton.cdiv(width, CHANNELS),)](dc, parts, c, batch, width, 32, CHANNELS)


def channels_of(width):
    """How many channels a program has."""
    return min(CHANNELS, triton.next_power_of_2(width))


def programs(sequences):
    """Of the channels along x, and of the sequences along y."""
    batch, _length, width = sequences.shape
    return triton.cdiv(width, channels_of(width)), batch
