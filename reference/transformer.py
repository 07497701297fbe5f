"""A decoder-only language model whose softmax and layer norms go through our kernels, or are done one by one.

Problem 5. The two operations first, then the model: embeddings, decoder layers (layer norm, causal
attention, layer norm, feed-forward network, with a residual around each half), a last layer norm, logits.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from kernels import launch
from torch import Tensor, nn
from torch.nn import functional

EPSILON = 1e-8


class AttentionSoftmax(torch.autograd.Function):
    """softmax(scores + mask) over the last axis, on the kernels."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, mask_future: bool) -> Tensor:
        """Weights [B, H, F, T] of ``scores`` [B, H, F, T] and ``mask`` [B, T]; the kernel works in place."""
        weights = scores.clone(memory_format=torch.contiguous_format)
        launch("launch_attn_softmax", weights, mask, *weights.shape, mask_future)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        """Gradient of the scores, from the weights that forward returned."""
        (weights,) = ctx.saved_tensors
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        keys = weights.shape[-1]
        launch("launch_attn_softmax_bw", gradient, weights, weights.numel() // keys, keys)
        return gradient, None, None


class LayerNormalisation(torch.autograd.Function):
    """LayerNorm over the last axis, on the kernels."""

    @staticmethod
    def forward(ctx: Any, inp: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
        """Normalised ``inp`` [..., H], scaled and shifted by ``scale`` [H] and ``bias`` [H]."""
        inp = inp.contiguous()
        hidden = inp.shape[-1]
        rows = inp.numel() // hidden
        normalised = torch.empty_like(inp)
        variances, means = inp.new_empty(rows), inp.new_empty(rows)
        launch("launch_layernorm", normalised, variances, means, inp, scale, bias, rows, hidden)
        ctx.save_for_backward(inp, scale, bias, variances, means)
        return normalised

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of inp, scale and bias."""
        inp, scale, bias, variances, means = ctx.saved_tensors
        gradient = gradient.contiguous()
        of_scale, of_bias, of_inp = torch.empty_like(scale), torch.empty_like(bias), torch.empty_like(inp)
        launch(
            "launch_layernorm_bw",
            *(of_scale, of_bias, of_inp),
            *(gradient, inp, scale, bias, variances, means),
            *(means.numel(), scale.numel()),
        )
        return of_inp, of_scale, of_bias


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
        softmax = attn_softmax if self.use_fused_kernel else unfused_softmax
        weights = self.dropout(softmax(scores, mask, mask_future=True))
        return self.output((weights @ value).transpose(1, 2).reshape(batch, length, width))


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
        norm = layer_norm if self.use_fused_kernel else unfused_layer_norm
        inp = inp + self.attention(norm(inp, self.norm_1.scale, self.norm_1.bias), mask)
        return inp + self.feed_forward(norm(inp, self.norm_2.scale, self.norm_2.bias))


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
        norm = layer_norm if self.use_fused_kernel else unfused_layer_norm
        return self.logits(norm(inp, self.norm.scale, self.norm.bias))
