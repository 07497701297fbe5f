"""Other ways to the RG-LRU's forward pass, in Triton: gates and scan fused, in sequence or by a scan.

Needs Triton and a GPU; ``assignments_gpu.py`` skips these where it cannot import them.
"""

# ruff: noqa: ANN001, ANN202, N803 - Triton's parameters are no Python objects

from __future__ import annotations

from typing import TYPE_CHECKING

import triton
import triton.language as tl

if TYPE_CHECKING:
    import torch

EIGHT = tl.constexpr(8.0)


@triton.jit
def _step(x, gx, ga, rate):
    d = rate * tl.sigmoid(ga)
    a = tl.exp(-d)
    z = 2 * d
    series = z * (1 - z * (0.5 - z * (1 / 6 - z * (1 / 24 - z * (1 / 120 - z / 720)))))
    s = tl.sqrt(tl.where(z > 0.25, 1 - a * a, series))
    return a, s * tl.sigmoid(gx) * x


@triton.jit
def _sequential(h, x, gx, ga, c, length, width, CHANNELS: tl.constexpr):
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    at = tl.program_id(1).to(tl.int64) * length * width + channel
    rate = EIGHT * tl.log(1 + tl.exp(tl.load(c + channel)))
    state = tl.zeros((CHANNELS,), tl.float32)
    for _ in range(length):
        a, b = _step(
            tl.load(x + at).to(tl.float32),
            tl.load(gx + at).to(tl.float32),
            tl.load(ga + at).to(tl.float32),
            rate,
        )
        state = a * state + b
        tl.store(h + at, state.to(h.dtype.element_ty))
        at += width


@triton.jit
def _combine(earlier_a, earlier_b, a, b):
    return earlier_a * a, a * earlier_b + b


@triton.jit
def _associative(h, x, gx, ga, c, length, width, CHANNELS: tl.constexpr, STEPS: tl.constexpr):
    channel = tl.program_id(0) * CHANNELS + tl.arange(0, CHANNELS)
    start = tl.program_id(1).to(tl.int64) * length * width
    rate = EIGHT * tl.log(1 + tl.exp(tl.load(c + channel)))[None, :]
    state = tl.zeros((CHANNELS,), tl.float32)
    steps = tl.arange(0, STEPS)
    for first in range(0, length, STEPS):
        at = start + (first + steps)[:, None].to(tl.int64) * width + channel[None, :]
        a, b = _step(
            tl.load(x + at).to(tl.float32),
            tl.load(gx + at).to(tl.float32),
            tl.load(ga + at).to(tl.float32),
            rate,
        )
        b += tl.where(steps[:, None] == 0, a * state[None, :], 0.0)
        _, states = tl.associative_scan((a, b), 0, _combine)
        tl.store(h + at, states.to(h.dtype.element_ty))
        state = tl.sum(tl.where(steps[:, None] == STEPS - 1, states, 0.0), 0)


def sequential(h: torch.Tensor, *inputs: torch.Tensor, channels: int = 32) -> None:
    """H [B, L, R] of x, gx, ga and c, one step after another; R is a multiple of ``channels``."""
    batch, length, width = h.shape
    _sequential[width // channels, batch](h, *inputs, length, width, CHANNELS=channels, num_warps=1)


def associative(h: torch.Tensor, *inputs: torch.Tensor, channels: int = 32, steps: int = 64) -> None:
    """The same by a parallel scan of ``steps`` steps at a time, of which L is a multiple."""
    batch, length, width = h.shape
    _associative[width // channels, batch](
        h, *inputs, length, width, CHANNELS=channels, STEPS=steps, num_warps=4
    )
