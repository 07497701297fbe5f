"""The linear scan by programs with one channel of one sequence, whose tiles are of time alone."""

import triton
import triton.language as tl

STEPS = 256


@triton.jit
def compose(factor, value, next_factor, next_value):
    return factor * next_factor, next_factor * value + next_value


@triton.jit
def one_channel(h, a, b, h0, length, width, started: tl.constexpr, steps: tl.constexpr):
    channel = tl.program_id(0)
    sequence = tl.program_id(1).to(tl.int64)
    carry = 0.0
    if started:
        carry = tl.load(h0 + sequence * width + channel)
    index = tl.arange(0, steps)
    for first in range(0, length, steps):
        inside = first + index < length
        at = (sequence * length + first + index) * width + channel
        factor = tl.load(a + at, mask=inside, other=1.0).to(tl.float32)
        value = tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
        value += tl.where(index == 0, factor * carry, 0.0)
        _product, state = tl.associative_scan((factor, value), 0, compose)
        tl.store(h + at, state, mask=inside)
        carry = tl.sum(tl.where(index == steps - 1, state, 0.0), axis=0)


def linear_scan(h, a, b, h0):
    batch, length, width = h.shape
    started = h0 is not None
    one_channel[(width, batch)](h, a, b, h0 if started else h, length, width, started, STEPS, num_warps=2)
