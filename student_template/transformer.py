"""A decoder-only language model whose softmax and layer norms go through your kernels (problem 5).

The model is given with the unfused formulas, and so is ``launch``, which calls your launchers (see
``kernels.py``). Write, in this order: ``AttentionSoftmax``, ``LayerNormalisation``, and the fused way
(``use_fused_kernel``) of ``MultiHeadAttention``, ``TransformerLayer`` and ``DecoderLM``. Keep the names of
modules, parameters and arguments.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-8


class AttentionSoftmax(torch.autograd.Function):
    """softmax(scores + mask) over the last axis, on your kernels."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, mask_future: bool) -> Tensor:
        """Weights [B, H, F, T] of ``scores`` [B, H, F, T] and ``mask`` [B, T]; the kernel works in place."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Gradient of the scores, from the weights that forward returned."""
        raise NotImplementedError


class LayerNormalisation(torch.autograd.Function):
    """LayerNorm over the last axis, on your kernels."""

    @staticmethod
    def forward(ctx: Any, inp: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        """Normalised ``inp`` [..., H], scaled and shifted by ``scale`` [H] and ``bias`` [H]."""
        raise NotImplementedError

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of inp, scale and bias."""
        raise NotImplementedError


def attn_softmax(scores: Tensor, mask: Tensor | None, mask_future: bool) -> Tensor:
    """``AttentionSoftmax`` as a function."""
    return AttentionSoftmax.apply(scores, mask, mask_future)


def layer_norm(inp: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """``LayerNormalisation`` as a function."""
    return LayerNormalisation.apply(inp, scale, bias)


def unfused_softmax(scores: Tensor, mask: Tensor | None, mask_future: bool) -> Tensor:
    """The same formula one operation at a time: what the fused kernels are compared with."""
    if mask is not None:
        scores = scores + mask[:, None, None, :]
    if mask_future:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(future, -math.inf)
    powers = torch.exp(scores - scores.detach().amax(-1, keepdim=True))
    return powers / powers.sum(-1, keepdim=True)


def unfused_layer_norm(inp: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """The same formula one operation at a time."""
    centred = inp - inp.mean(-1, keepdim=True)
    variance = (centred * centred).mean(-1, keepdim=True)
    return centred / torch.sqrt(variance + EPSILON) * scale + bias


class Norm(nn.Module):
    """The parameters of one layer norm over ``width`` elements."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))


class MultiHeadAttention(nn.Module):
    """Causal self-attention: a position sees itself and what is before it, except where ``mask`` hides it."""

    def __init__(self, width: int, heads: int, dropout: float, use_fused_kernel: bool) -> None:
        super().__init__()
        self.heads = heads
        self.use_fused_kernel = use_fused_kernel
        self.query, self.key, self.value, self.output = (nn.Linear(width, width) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, inp: Tensor, mask: Tensor | None) -> Tensor:
        """[B, T, width] of ``inp`` [B, T, width]; ``mask`` [B, T] is added to the scores of each key."""
        batch, length, width = inp.shape
        query, key, value = (
            project(inp).view(batch, length, self.heads, -1).transpose(1, 2)
            for project in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-2, -1) / math.sqrt(width // self.heads)
        if self.use_fused_kernel:
            raise NotImplementedError
        weights = unfused_softmax(scores, mask, mask_future=True)
        return self.output((self.dropout(weights) @ value).transpose(1, 2).reshape(batch, length, width))


class FeedForward(nn.Module):
    """Two linear maps with a GELU between them."""

    def __init__(self, width: int, hidden: int, dropout: float) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, inp: Tensor) -> Tensor:
        """[B, T, width] of ``inp`` [B, T, width]."""
        return self.dropout(self.outer(functional.gelu(self.inner(inp))))


class TransformerLayer(nn.Module):
    """Attention and a feed-forward network, each behind a layer norm and added to what it got (pre-LN)."""

    def __init__(self, width: int, heads: int, hidden: int, dropout: float, use_fused_kernel: bool) -> None:
        super().__init__()
        self.use_fused_kernel = use_fused_kernel
        self.norm_1, self.norm_2 = Norm(width), Norm(width)
        self.attention = MultiHeadAttention(width, heads, dropout, use_fused_kernel)
        self.feed_forward = FeedForward(width, hidden, dropout)

    def forward(self, inp: Tensor, mask: Tensor | None) -> Tensor:
        """[B, T, width] of ``inp`` [B, T, width]."""
        if self.use_fused_kernel:
            raise NotImplementedError
        normalised = unfused_layer_norm(inp, self.norm_1.scale, self.norm_1.bias)
        inp = inp + self.attention(normalised, mask)
        normalised = unfused_layer_norm(inp, self.norm_2.scale, self.norm_2.bias)
        return inp + self.feed_forward(normalised)


class DecoderLM(nn.Module):
    """Embeddings of tokens and positions, decoder layers, a layer norm, logits."""

    def __init__(
        self,
        vocabulary: int,
        width: int,
        heads: int,
        hidden: int,
        positions: int,
        layers: int,
        dropout: float,
        use_fused_kernel: bool,
    ) -> None:
        super().__init__()
        self.use_fused_kernel = use_fused_kernel
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            TransformerLayer(width, heads, hidden, dropout, use_fused_kernel) for _ in range(layers)
        )
        self.norm = Norm(width)
        self.logits = nn.Linear(width, vocabulary)

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Logits [B, T, vocabulary] of ``tokens`` [B, T]; ``mask`` [B, T] is 0, and -inf at padding."""
        places = torch.arange(tokens.shape[1], device=tokens.device)
        inp = self.dropout(self.tokens(tokens) + self.positions(places))
        for layer in self.layers:
            inp = layer(inp, mask)
        if self.use_fused_kernel:
            raise NotImplementedError
        return self.logits(unfused_layer_norm(inp, self.norm.scale, self.norm.bias))
