"""RMSNorm as a PyTorch module on your kernels, and a way to take over one that a model already has.

Problem 3. Write the bodies that raise NotImplementedError; HANDOUT.md says what they must do.
``kernels.launch`` calls a launcher, ``kernels.typed`` gives its name for a type.
"""

from __future__ import annotations

from typing import Any

import torch
from kernels import launch, typed  # noqa: F401 - for your code
from torch import Tensor, nn


class Normalisation(torch.autograd.Function):
    """RMSNorm over the last axis, on the kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """Normalised ``x`` [..., H], scaled by ``weight`` [H] of the same type."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients of x and weight."""
        raise NotImplementedError


class RMSNorm(nn.Module):
    """RMSNorm over the last axis of ``hidden`` elements."""

    def __init__(self, hidden: int, epsilon: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.variance_epsilon = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """[..., hidden] of ``x`` [..., hidden], which has the type of the weight."""
        return Normalisation.apply(x, self.weight, self.variance_epsilon)


def from_llama_rmsnorm(module: nn.Module) -> RMSNorm:
    """An ``RMSNorm`` that shares the ``weight`` of ``module`` and has its ``variance_epsilon``."""
    raise NotImplementedError
