"""A recurrent layer of PyTorch whose gates, decay and scan are one kernel, or are done one by one.

Problem 4. Write the bodies that raise NotImplementedError; HANDOUT.md says what they must do.
``kernels.launch`` calls a launcher, ``kernels.typed`` gives its name for a type.
"""

from __future__ import annotations

from typing import Any

import torch
from kernels import launch, typed  # noqa: F401 - for your code
from torch import Tensor, nn

EIGHT = 8.0


class Recurrence(torch.autograd.Function):
    """The RG-LRU behind its two linear maps, on the kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, gx: Tensor, ga: Tensor, c: Tensor, h0: Tensor | None) -> Tensor:
        """States [B, L, R] of ``x``, ``gx`` and ``ga`` [B, L, R], ``c`` [R] and ``h0`` [B, R] or None."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, dh: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
        """Gradients of all five."""
        raise NotImplementedError


def rglru(x: Tensor, gx: Tensor, ga: Tensor, c: Tensor, h0: Tensor | None) -> Tensor:
    """``Recurrence`` as a function."""
    return Recurrence.apply(x, gx, ga, c, h0)


def unfused_rglru(x: Tensor, gx: Tensor, ga: Tensor, c: Tensor, h0: Tensor | None) -> Tensor:
    """The same formula one operation at a time: what the fused kernels are compared with."""
    decay = EIGHT * torch.sigmoid(ga) * torch.log1p(torch.exp(c))
    factor = torch.exp(-decay)
    added = torch.sqrt(-torch.expm1(-2 * decay)) * torch.sigmoid(gx) * x
    state = torch.zeros_like(x[:, 0]) if h0 is None else h0
    states = []
    for step in range(x.shape[1]):
        state = factor[:, step] * state + added[:, step]
        states.append(state)
    return torch.stack(states, 1)


class RGLRU(nn.Module):
    """Two linear maps make the gates of a linear recurrence of ``width`` channels."""

    def __init__(self, width: int, use_fused_kernel: bool) -> None:
        super().__init__()
        self.use_fused_kernel = use_fused_kernel
        self.input_gate, self.recurrence_gate = nn.Linear(width, width), nn.Linear(width, width)
        self.c = nn.Parameter(torch.full((width,), -4.0))

    def forward(self, x: Tensor, h0: Tensor | None = None) -> Tensor:
        """States [B, L, width] of ``x`` [B, L, width], from ``h0`` [B, width] or zeros on."""
        recurrence = rglru if self.use_fused_kernel else unfused_rglru
        return recurrence(x, self.input_gate(x), self.recurrence_gate(x), self.c, h0)
