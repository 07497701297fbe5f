"""The decoder-only language model of ``transformer.py`` in float64, from the handout's formulas alone.

Everything is a function of weights by their names. The formulas of softmax and layer norm stand here
operation by operation, so that ``rounding`` sees each; what the four launchers write goes through
``Marks``, which records and marks it.

Layer: imports torch.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor

    from grader.problems.written import Written

    Weights = Mapping[str, Tensor]
    Marks = Written | Mapping[str, float]  # an empty mapping for a model that nobody watches

EPSILON = 1e-8
SOFTMAX, SOFTMAX_BW = "launch_attn_softmax.inp", "launch_attn_softmax_bw.out_grad"
NORM, NORM_INP = "launch_layernorm.ln_res", "launch_layernorm_bw.inp_grad"
NORM_SCALE, NORM_BIAS = "launch_layernorm_bw.gamma_grad", "launch_layernorm_bw.betta_grad"
"""What the launchers write and the model uses; means and variances are for the backward alone."""


def _written(marks: Marks, name: str, value: Tensor) -> Tensor:
    """What the model gets of ``value``, which a launcher writes."""
    return marks(name, value) if callable(marks) else value


class _Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, marks: Marks) -> Tensor:  # noqa: ANN401
        powers = torch.exp(logits - logits.amax(-1, keepdim=True))
        weights = _written(marks, SOFTMAX, powers / powers.sum(-1, keepdim=True))
        ctx.save_for_backward(weights)
        ctx.marks = marks
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (weights,) = ctx.saved_tensors
        inner = (gradient * weights).sum(-1, keepdim=True)
        return _written(ctx.marks, SOFTMAX_BW, weights * (gradient - inner)), None


class _LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inp: Tensor, scale: Tensor, bias: Tensor, marks: Marks) -> Tensor:  # noqa: ANN401
        centred = inp - inp.mean(-1, keepdim=True)
        sigma = torch.sqrt((centred * centred).mean(-1, keepdim=True) + EPSILON)
        normalised = centred / sigma
        ctx.save_for_backward(normalised, sigma, scale)
        ctx.marks = marks
        return _written(marks, NORM, normalised * scale + bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # noqa: ANN401
        normalised, sigma, scale = ctx.saved_tensors
        rows = tuple(range(gradient.dim() - 1))
        scaled = gradient * scale
        along = normalised * (scaled * normalised).mean(-1, keepdim=True)
        of_inp = (scaled - scaled.mean(-1, keepdim=True) - along) / sigma
        of_scale, of_bias = (gradient * normalised).sum(rows), gradient.sum(rows)
        marks = ctx.marks
        return (
            _written(marks, NORM_INP, of_inp),
            _written(marks, NORM_SCALE, of_scale),
            _written(marks, NORM_BIAS, of_bias),
            None,
        )


def softmax(scores: Tensor, mask: Tensor | None, *, future: bool, marks: Marks) -> Tensor:
    """Weights of ``scores`` [B, H, F, T] plus ``mask`` [B, T], the future hidden where asked."""
    if mask is not None:
        scores = scores + mask[:, None, None, :]
    if future:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    weights: Tensor = _Softmax.apply(scores, marks)  # type: ignore[no-untyped-call]
    return weights


def layer_norm(inp: Tensor, scale: Tensor, bias: Tensor, marks: Marks) -> Tensor:
    """LayerNorm of ``inp`` [..., H] over the last axis."""
    normalised: Tensor = _LayerNorm.apply(inp, scale, bias, marks)  # type: ignore[no-untyped-call]
    return normalised


def attention(
    weights: Weights, inp: Tensor, mask: Tensor | None, heads: int, drops: Iterator[Tensor], marks: Marks
) -> Tensor:
    """``MultiHeadAttention`` of ``inp`` [B, T, W]; ``drops`` are the factors that dropout multiplies with."""
    batch, length, width = inp.shape
    query, key, value = (
        _linear(weights, name, inp).view(batch, length, heads, -1).transpose(1, 2)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(-2, -1) / math.sqrt(width // heads)
    weights_of_keys = softmax(scores, mask, future=True, marks=marks)
    context = (_dropped(weights_of_keys, drops) @ value).transpose(1, 2).reshape(batch, length, width)
    return _linear(weights, "output", context)


def layer(
    weights: Weights, inp: Tensor, mask: Tensor | None, heads: int, drops: Iterator[Tensor], marks: Marks
) -> Tensor:
    """``TransformerLayer`` of ``inp`` [B, T, W]."""
    normalised = layer_norm(inp, weights["norm_1.scale"], weights["norm_1.bias"], marks)
    inp = inp + attention(_part(weights, "attention."), normalised, mask, heads, drops, marks)
    normalised = layer_norm(inp, weights["norm_2.scale"], weights["norm_2.bias"], marks)
    inner = _linear(weights, "feed_forward.inner", normalised)
    gelu = inner * 0.5 * (1 + torch.erf(inner * math.sqrt(0.5)))
    return inp + _dropped(_linear(weights, "feed_forward.outer", gelu), drops)


def loss(
    weights: Weights,
    tokens: Tensor,
    mask: Tensor,
    counted: Tensor,
    sizes: Mapping[str, int],
    drops: Iterator[Tensor],
    marks: Marks,
) -> Tensor:
    """Mean cross entropy, over the targets that count, of ``DecoderLM`` for ``tokens`` [B, T + 1]."""
    inputs, targets = tokens[:, :-1], tokens[:, 1:]
    words = torch.nn.functional.one_hot(inputs, sizes["vocabulary"]).double()
    inp = words @ weights["tokens.weight"] + weights["positions.weight"][: inputs.shape[1]]
    inp = _dropped(inp, drops)
    for number in range(sizes["layers"]):
        inp = layer(_part(weights, f"layers.{number}."), inp, mask, sizes["heads"], drops, marks)
    logits = _linear(weights, "logits", layer_norm(inp, weights["norm.scale"], weights["norm.bias"], marks))
    shifted = logits - logits.amax(-1, keepdim=True)
    chosen = torch.nn.functional.one_hot(targets, sizes["vocabulary"]).double()
    each = torch.log(torch.exp(shifted).sum(-1)) - (shifted * chosen).sum(-1)
    return (each * counted).sum() / counted.sum()


def attention_shapes(width: int) -> dict[str, tuple[int, ...]]:
    """The parameters of ``MultiHeadAttention``."""
    return {
        f"{name}.{part}": shape
        for name in ("query", "key", "value", "output")
        for part, shape in (("weight", (width, width)), ("bias", (width,)))
    }


def layer_shapes(width: int, hidden: int) -> dict[str, tuple[int, ...]]:
    """The parameters of ``TransformerLayer``."""
    return {
        **{f"norm_{number}.{part}": (width,) for number in (1, 2) for part in ("scale", "bias")},
        **{f"attention.{name}": shape for name, shape in attention_shapes(width).items()},
        "feed_forward.inner.weight": (hidden, width),
        "feed_forward.inner.bias": (hidden,),
        "feed_forward.outer.weight": (width, hidden),
        "feed_forward.outer.bias": (width,),
    }


def model_shapes(sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """The parameters of ``DecoderLM``."""
    vocabulary, width = sizes["vocabulary"], sizes["width"]
    return {
        "tokens.weight": (vocabulary, width),
        "positions.weight": (sizes["positions"], width),
        **{
            f"layers.{number}.{name}": shape
            for number in range(sizes["layers"])
            for name, shape in layer_shapes(width, sizes["hidden"]).items()
        },
        "norm.scale": (width,),
        "norm.bias": (width,),
        "logits.weight": (vocabulary, width),
        "logits.bias": (vocabulary,),
    }


def _linear(weights: Weights, name: str, inp: Tensor) -> Tensor:
    return inp @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]


def _dropped(inp: Tensor, drops: Iterator[Tensor]) -> Tensor:
    factors = next(drops, None)
    return inp if factors is None else inp * factors


def _part(weights: Weights, prefix: str) -> Weights:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
