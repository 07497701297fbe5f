"""A kernel of the time table, launched a number of times: timed.py NAME TIMES."""

import os
import sys

import torch
import triton
import triton.language as tl

torch.set_default_device("cpu" if "TRITON_INTERPRET" in os.environ else "cuda")


@triton.jit
def rms(x, weight, out, columns, eps, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    mask = at < columns
    value = tl.load(x + row * columns + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, axis=0) / columns + eps)
    tl.store(out + row * columns + at, value * scale * tl.load(weight + at, mask=mask), mask=mask)


@triton.jit
def recurrence(a, x, out, length, width, tile: tl.constexpr):
    at = tl.program_id(0) * length * width + tl.program_id(1) * tile + tl.arange(0, tile)
    state = tl.zeros((tile,), tl.float32)
    for _ in range(length):
        decay = tl.load(a + at)
        state = decay * state + tl.sqrt(1 - decay * decay) * tl.load(x + at)
        tl.store(out + at, state)
        at += width


def launch_rms():
    x = torch.ones(64, 4096, dtype=torch.bfloat16)
    rms[(64,)](x, x[0], torch.empty_like(x), 4096, 1e-6, size=4096)


def launch_recurrence():
    x = torch.rand(2, 512, 256)
    recurrence[(2, 2)](x, x, torch.empty_like(x), 512, 256, tile=128)


for _ in range(int(sys.argv[2])):
    {"rms": launch_rms, "recurrence": launch_recurrence}[sys.argv[1]]()
