"""The linear scan one step after the other, by programs with some channels of one sequence."""

import triton
import triton.language as tl

CHANNELS = 64


@triton.jit
def steps(h, a, b, h0, length, width, started: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    state = tl.zeros((channels,), tl.float32)
    if started:
        state = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    for time in range(length):
        at = (sequence * length + time) * width + channel
        factor = tl.load(a + at, mask=there, other=0.0).to(tl.float32)
        state = factor * state + tl.load(b + at, mask=there, other=0.0).to(tl.float32)
        tl.store(h + at, state, mask=there)


def linear_scan(h, a, b, h0):
    batch, length, width = h.shape
    started, grid = h0 is not None, (triton.cdiv(width, CHANNELS), batch)
    steps[grid](h, a, b, h0 if started else h, length, width, started, CHANNELS, num_warps=2)
