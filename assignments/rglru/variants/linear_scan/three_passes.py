"""The linear scan in three passes: chunks from zero, what goes from chunk to chunk, and what that adds."""

import torch
import triton
import triton.language as tl

STEPS, CHANNELS = 64, 32


@triton.jit
def chunk(products, lasts, a, b, length, width, steps: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    chunks, sequence = tl.num_programs(1), tl.program_id(2).to(tl.int64)
    product = tl.full((channels,), 1.0, tl.float32)
    state = tl.zeros((channels,), tl.float32)
    for index in range(steps):
        time = tl.program_id(1) * steps + index
        inside = there & (time < length)
        at = (sequence * length + time) * width + channel
        factor = tl.load(a + at, mask=inside, other=1.0).to(tl.float32)
        product *= factor
        state = factor * state + tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
    at = (sequence * chunks + tl.program_id(1)) * width + channel
    tl.store(products + at, product, mask=there)
    tl.store(lasts + at, state, mask=there)


@triton.jit
def between(starts, products, lasts, h0, chunks, width, started: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    sequence = tl.program_id(1).to(tl.int64)
    state = tl.zeros((channels,), tl.float32)
    if started:
        state = tl.load(h0 + sequence * width + channel, mask=there, other=0.0)
    for index in range(chunks):
        at = (sequence * chunks + index) * width + channel
        tl.store(starts + at, state, mask=there)
        product = tl.load(products + at, mask=there, other=0.0)
        state = product * state + tl.load(lasts + at, mask=there, other=0.0)


@triton.jit
def finish(h, starts, a, b, length, width, steps: tl.constexpr, channels: tl.constexpr):
    channel = tl.program_id(0) * channels + tl.arange(0, channels)
    there = channel < width
    chunks, sequence = tl.num_programs(1), tl.program_id(2).to(tl.int64)
    state = tl.load(starts + (sequence * chunks + tl.program_id(1)) * width + channel, mask=there, other=0.0)
    for index in range(steps):
        time = tl.program_id(1) * steps + index
        inside = there & (time < length)
        at = (sequence * length + time) * width + channel
        factor = tl.load(a + at, mask=inside, other=1.0).to(tl.float32)
        state = factor * state + tl.load(b + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(h + at, state, mask=inside)


def linear_scan(h, a, b, h0):
    batch, length, width = h.shape
    chunks, slabs = triton.cdiv(length, STEPS), triton.cdiv(width, CHANNELS)
    products, lasts, starts = (
        torch.empty((batch, chunks, width), dtype=torch.float32, device=h.device) for _ in range(3)
    )
    started, grid = h0 is not None, (slabs, chunks, batch)
    chunk[grid](products, lasts, a, b, length, width, STEPS, CHANNELS, num_warps=1)
    between[(slabs, batch)](
        starts, products, lasts, h0 if started else h, chunks, width, started, CHANNELS, num_warps=1
    )
    finish[grid](h, starts, a, b, length, width, STEPS, CHANNELS, num_warps=1)
