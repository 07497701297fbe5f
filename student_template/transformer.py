"""A decoder-only language model whose softmax and layer norms go through your kernels (problem 5).

``kernels`` has the four operations as functions of PyTorch tensors: ``attn_softmax_fw``, ``attn_softmax_bw``,
``layernorm_fw`` and ``layernorm_bw``. Wrap them in ``torch.autograd.Function`` and build the model on top.
"""

# ruff: noqa: ARG002, INP001 - the arguments are yours to use; a submission is a folder, not a package

from __future__ import annotations

import torch
from torch import Tensor, nn


class AttentionSoftmax(torch.autograd.Function):
    """softmax(scores + mask) over the last axis, on your kernels."""

    @staticmethod
    def forward(ctx: object, scores: Tensor, mask: Tensor | None, mask_future: bool) -> Tensor:
        """Weights [B, H, F, T] of ``scores`` [B, H, F, T] and ``mask`` [B, T]; the kernel works in place."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Gradient of the scores."""
        raise NotImplementedError


class LayerNorm(torch.autograd.Function):
    """LayerNorm over the last axis, on your kernels."""

    @staticmethod
    def forward(ctx: object, rows: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        """Normalised ``rows`` [N, H], scaled and shifted by ``scale`` [H] and ``bias`` [H]."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of rows, scale and bias."""
        raise NotImplementedError


class DecoderLM(nn.Module):
    """Embeddings, ``layers`` decoder blocks (causal attention, then a GELU network), a norm, logits."""

    def __init__(self, vocabulary: int, width: int, heads: int, positions: int, layers: int) -> None:
        super().__init__()
        raise NotImplementedError

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits [B, T, vocabulary] of ``tokens`` [B, T]."""
        raise NotImplementedError
