"""RMSNorm as a PyTorch module on the kernels, and a way to take over one that a model already has."""

from __future__ import annotations

from typing import Any

import torch
from kernels import launch, typed
from torch import Tensor, nn


class Normalisation(torch.autograd.Function):
    """RMSNorm over the last axis, on the kernels."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
        """Normalised ``x`` [..., H], scaled by ``weight`` [H] of the same type."""
        x = x.contiguous()
        hidden = x.shape[-1]
        rows = x.numel() // hidden
        y, rstd = torch.empty_like(x), x.new_empty(rows, dtype=torch.float32)
        launch(typed("launch_rmsnorm_forward", x.dtype), y, rstd, x, weight, epsilon, rows, hidden)
        ctx.save_for_backward(x, weight, rstd)
        return y

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor, Tensor, None]:
        """Gradients of x and weight."""
        x, weight, rstd = ctx.saved_tensors
        dx, dweight = torch.empty_like(x), torch.empty_like(weight)
        launch(
            typed("launch_rmsnorm_backward", x.dtype),
            *(dx, dweight, dy.contiguous(), x, weight, rstd, rstd.numel(), weight.numel()),
        )
        return dx, dweight, None


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
    norm = RMSNorm(0, module.variance_epsilon)
    norm.weight = module.weight
    return norm
