"""Wrong models: each is the reference with one small edit, and must fail; variants are right, and must pass.

``group`` is a case group that must fail, ``said`` a piece of what the judge must say, if it can know. Of a
variant it says that it differs in how it launches: the groups of many steps show nothing more of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "reference"

SOFTMAX, NORM, MODULES = "attn_softmax", "layer_norm", "attention and layer"
STEPS, DROPOUT, KERNELS = "twenty steps", "dropout", "your kernels"


@dataclass(frozen=True)
class Edit:
    """Pairs of what stands in the reference exactly once and what it becomes."""

    id: str
    edits: tuple[tuple[str, str], ...]
    group: str = ""
    said: str = ""

    def text(self) -> str:
        """The edited file.

        Raises:
            ValueError: what is to be replaced does not stand there exactly once.
        """
        text = (REFERENCE / "transformer.py").read_text()
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.id}: {old!r} stands {text.count(old)} times in transformer.py")
            text = text.replace(old, new)
        return text


def one(name: str, old: str, new: str, group: str, said: str = "") -> Edit:
    return Edit(name, ((old, new),), group, said)


_FORWARD = 'launch("launch_attn_softmax", weights, mask, *weights.shape, mask_future)'
_SAVED = "ctx.save_for_backward(weights)"
_CLONE = "weights = scores.clone(memory_format=torch.contiguous_format)"
_GRADIENT = "gradient = gradient.clone(memory_format=torch.contiguous_format)"
_BACKWARD = 'launch("launch_attn_softmax_bw", gradient, weights, weights.numel() // keys, keys)'
_CHOSEN = "softmax = attn_softmax if self.use_fused_kernel else unfused_softmax"
_DROPPED = "weights = self.dropout(softmax(scores, mask, mask_future=True))"
_CONTEXT = "(weights @ value).transpose(1, 2).reshape(batch, length, width)"
_LAYER = "inp = inp + self.attention(norm(inp, self.norm_1.scale, self.norm_1.bias), mask)"
_LAST = """norm = layer_norm if self.use_fused_kernel else unfused_layer_norm
        return self.logits("""

MUTANTS = (
    one(
        "mask-not-passed",
        _FORWARD,
        _FORWARD.replace("mask, *", "None, *"),
        SOFTMAX,
        "padding mask does not reach",
    ),
    one(
        "future-not-passed",
        _FORWARD,
        _FORWARD.replace("mask_future)", "False)"),
        SOFTMAX,
        "mask_future does not reach",
    ),
    one("mask-of-keys-dropped", _DROPPED, _DROPPED.replace("scores, mask,", "scores, None,"), MODULES),
    one("saved-input", _SAVED, "ctx.save_for_backward(scores.contiguous())", SOFTMAX, "reads the scores"),
    one("in-place-on-the-scores", _CLONE, "weights = scores.contiguous()", SOFTMAX, "overwrites its input"),
    one(
        "in-place-on-the-gradient",
        _GRADIENT,
        "gradient = gradient.contiguous()",
        SOFTMAX,
        "overwrites the gradient",
    ),
    one("not-made-dense", _CLONE, "weights = scores.clone()", SOFTMAX, "not contiguous"),
    one(
        "arguments-swapped", _BACKWARD, _BACKWARD.replace("gradient, weights,", "weights, gradient,"), SOFTMAX
    ),
    one("rows-of-one-head", _BACKWARD, _BACKWARD.replace("numel() // keys", "shape[0] * keys"), MODULES),
    one(
        "sizes-swapped",
        _FORWARD,
        _FORWARD.replace("*weights.shape", "*weights.shape[:2], *weights.shape[:1:-1]"),
        SOFTMAX,
    ),
    one(
        "result-thrown-away",
        "        return weights\n",
        "        result = unfused_softmax(scores, mask, mask_future)\n        return result\n",
        KERNELS,
    ),
    one(
        "gamma-gradient-not-reduced",
        "return of_inp, of_scale, of_bias",
        "return of_inp, gradient * inp, of_bias",
        NORM,
    ),
    one(
        "gamma-gradient-of-one-row",
        "return of_inp, of_scale, of_bias",
        "return of_inp, of_scale, gradient.reshape(means.numel(), -1)[0]",
        NORM,
        "first row counts",
    ),
    one(
        "gradients-swapped",
        "return of_inp, of_scale, of_bias",
        "return of_inp, of_bias, of_scale",
        NORM,
        "scale and bias are swapped",
    ),
    one(
        "means-for-variances",
        'launch("launch_layernorm", normalised, variances, means,',
        'launch("launch_layernorm", normalised, means, variances,',
        NORM,
    ),
    one(
        "saved-output-of-the-norm",
        "ctx.save_for_backward(inp,",
        "ctx.save_for_backward(normalised,",
        NORM,
        "reads the output",
    ),
    one(
        "torch-softmax",
        _CHOSEN,
        "softmax = unfused_softmax",
        MODULES,
        "launch_attn_softmax was called 0 times",
    ),
    one(
        "torch-last-norm",
        _LAST,
        _LAST.replace("layer_norm if self.use_fused_kernel else ", ""),
        STEPS,
        "launch_layernorm was called",
    ),
    one(
        "dropout-twice",
        _DROPPED,
        "weights = self.dropout(self.dropout(softmax(scores, mask, mask_future=True)))",
        DROPOUT,
        "dropout",
    ),
    one("dropout-left-out", _DROPPED, "weights = softmax(scores, mask, mask_future=True)", DROPOUT),
    one(
        "dropout-twice-on-the-network",
        "return self.dropout(self.outer(functional.gelu(self.inner(inp))))",
        "return self.dropout(self.dropout(self.outer(functional.gelu(self.inner(inp)))))",
        DROPOUT,
        "dropout",
    ),
    one("wrong-transpose", _CONTEXT, _CONTEXT.replace(".transpose(1, 2)", ""), MODULES),
    one("not-scaled", " / math.sqrt(width // self.heads)", "", MODULES),
    one(
        "norm-of-one-for-both",
        "norm(inp, self.norm_2.scale, self.norm_2.bias)",
        "norm(inp, self.norm_1.scale, self.norm_2.bias)",
        MODULES,
    ),
    one(
        "norm-behind",
        _LAYER,
        "inp = norm(inp + self.attention(inp, mask), self.norm_1.scale, self.norm_1.bias)",
        MODULES,
    ),
    one(
        "waits",
        _DROPPED,
        _DROPPED + "\n        assert weights.sum().item() > 0",
        MODULES,
        "item() makes the host wait",
    ),
    one(
        "copies-to-the-host",
        _DROPPED,
        _DROPPED + "\n        weights = weights.cpu().to(inp.device)",
        MODULES,
        "cpu() makes the host wait",
    ),
    one("half-precision", "scores = query @ key", "scores = query.half().float() @ key", MODULES),
    one("renamed-parameter", "self.scale = nn.Parameter", "self.gamma = nn.Parameter", MODULES),
)

_FLAT = (
    "None if mask is None else mask.repeat_interleave(scores.shape[1], 0), "
    "scores.shape[0] * scores.shape[1], 1, *scores.shape[2:], mask_future"
)
_BY_HEAD = """for head in range(scores.shape[1]):
            part = weights[:, head : head + 1].contiguous()
            launch("launch_attn_softmax", part, mask, *part.shape, mask_future)
            weights[:, head : head + 1] = part"""
_PADDED = """keys = scores.shape[-1]
        wide = functional.pad(weights, (0, -keys % 8), value=-math.inf)
        masks = None if mask is None else functional.pad(mask, (0, -keys % 8), value=-math.inf)
        launch("launch_attn_softmax", wide, masks, *wide.shape, mask_future)
        weights = wide[..., :keys].contiguous()"""
_MASKED = """weights = weights if mask is None else weights + mask[:, None, None, :]
        launch("launch_attn_softmax", weights, None, *weights.shape, mask_future)"""
_NORM = 'launch("launch_layernorm", normalised, variances, means, inp, scale, bias, rows, hidden)'
_IN_HALVES = """flat, out = inp.view(rows, hidden), normalised.view(rows, hidden)
        for part in (slice(0, rows // 2), slice(rows // 2, rows)):
            count = flat[part].shape[0]
            results = (out[part], variances[part], means[part])
            launch("launch_layernorm", *results, flat[part], scale, bias, count, hidden)"""

_RIGHT = "unfused_softmax(scores, mask, mask_future)"
_TINY = """one = torch.zeros(1, 1, 1, 1, device=scores.device)
        launch("launch_attn_softmax", one, None, 1, 1, 1, 1, False)
"""
_FLAT_INPUT = """flat = torch.zeros_like(weights)
        launch("launch_attn_softmax", flat, None, *flat.shape, False)
"""
CHEATS = (
    Edit(
        "one-factor-from-one-number",
        ((_FORWARD, _TINY + "        weights = " + _RIGHT + " * one"),),
        said="elements, but the model has",
    ),
    Edit(
        "factors-from-equal-numbers-in-the-right-sizes",
        ((_FORWARD, _FLAT_INPUT + "        weights = " + _RIGHT + " * flat * scores.shape[-1]"),),
        said="no launch of launch_attn_softmax wrote",
    ),
    Edit(
        "launched-for-show-on-equal-numbers",
        ((_FORWARD, _FLAT_INPUT + "        weights = " + _RIGHT),),
        said="no launch of launch_attn_softmax wrote",
    ),
    Edit(
        "launched-for-show-on-the-right-numbers",
        ((_FORWARD, _FORWARD + "\n        weights = " + _RIGHT),),
    ),
    Edit(
        "one-factor-from-the-mean-of-the-right-numbers",
        (
            (
                _FORWARD,
                _FORWARD + "\n        weights = (right := " + _RIGHT + ") * (weights.sum() / right.sum())",
            ),
        ),
    ),
    Edit(
        "the-first-result-again",
        (
            (
                _FORWARD,
                _FORWARD + "\n        weights = KEPT.setdefault(tuple(weights.shape), weights).clone()",
            ),
            ("EPSILON = 1e-8\n", "EPSILON = 1e-8\nKEPT = {}\n"),
        ),
    ),
)
"""Right in what PyTorch computes; the launches are for show, or to learn the factors of the judge."""

VARIANTS = (
    Edit("reference", ()),
    Edit(
        "in-place-and-declared",
        (
            (_CLONE, "weights = scores if scores.is_contiguous() else scores.contiguous()"),
            (
                _SAVED,
                "ctx.save_for_backward(weights)\n        _ = weights is scores and ctx.mark_dirty(scores)",
            ),
        ),
    ),
    Edit(
        "two-dimensional-norm",
        (("inp = inp.contiguous()", "inp = inp.reshape(-1, scale.numel()).contiguous().view(inp.shape)"),),
    ),
    Edit(
        "heads-as-batches",
        ((_FORWARD, _FORWARD.replace("mask, *weights.shape, mask_future", _FLAT)),),
        KERNELS,
    ),
    Edit("launched-head-by-head", ((_FORWARD, _BY_HEAD),), KERNELS),
    Edit("padded-to-eight-keys", ((_FORWARD, _PADDED),), KERNELS),
    Edit("rows-in-two-halves", ((_NORM, _IN_HALVES),), KERNELS),
    Edit("masked-before-the-launch", ((_FORWARD, _MASKED),), KERNELS),
    Edit("gelu-as-a-module", (("functional.gelu(self.inner(inp))", "nn.GELU()(self.inner(inp))"),)),
)
