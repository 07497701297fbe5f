"""Calls a student's ``transformer.py`` in the runner: its functions, modules and training steps.

The judge names a function of ``FUNCTIONS`` in each of its calls; ``transformer.py`` beside this file says
what arrays and scalars it sends. This file is loaded only in the runner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import kernels
import torch
from torch.nn import functional

from grader.runner.model import FaultError, differentiated, gradient, gradients, load_weights

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from torch import Tensor

    from grader.runner.model import Function, Model, Tensors
    from grader.runner.protocol import Header

KERNELS = kernels
SIZES = ("vocabulary", "width", "heads", "hidden", "positions", "layers")  # of DecoderLM
PATHS = {"fused": True, "unfused": False}


@dataclass
class Training:
    """A model on its way through a text of lines: tokens [N, T + 1], attn_mask [N, T], counted [N, T].

    Attributes:
        held: the batch that a captured step reads.
        captured: such a step, which returns its loss in memory that the next one writes to.
    """

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    text: Tensors
    batch: int
    done: int = 0
    held: Tensors = field(default_factory=dict)
    captured: Callable[[], Tensor] | None = None

    def step(self) -> Tensor:
        """One step on the next batch. The loss stays on the device, and nobody waits for it."""
        batch = self._next()
        self.done += 1
        if self.captured is None:
            return self._trained(batch)
        for name, lines in batch.items():
            self.held[name].copy_(lines)
        return self.captured().clone()

    def capture(self, model: Model) -> None:
        """Let all further steps be those of a graph; at least one was made before."""
        self.held = {name: lines.clone() for name, lines in self._next().items()}
        self.captured = model.replayed(lambda: self._trained(self.held))

    def _next(self) -> Tensors:
        count = len(self.text["tokens"])
        begin = self.done * self.batch % (count - self.batch + 1)
        return {name: lines[begin : begin + self.batch] for name, lines in self.text.items()}

    def _trained(self, batch: Tensors) -> Tensor:
        tokens = batch["tokens"]
        loss = _loss(self.model(tokens[:, :-1], batch["attn_mask"]), tokens[:, 1:], batch["counted"])
        self.optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        self.optimizer.step()
        return loss.detach()


def attn_softmax(
    model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``attn_softmax`` of inp [B, H, F, T] and attn_mask [B, T] or none."""
    leaves = {"inp": arrays["inp"].requires_grad_()}
    mask, future = arrays.get("attn_mask"), scalars["mask_future"]
    return differentiated(
        model, lambda inp: model.module.attn_softmax(inp, mask, future), leaves, arrays, scalars
    )


def layer_norm(
    model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``layer_norm`` of inp [..., H], scale [H] and bias [H]."""
    leaves = {name: arrays[name].requires_grad_() for name in ("inp", "scale", "bias")}
    scale, bias = leaves["scale"], leaves["bias"]
    return differentiated(
        model, lambda inp: model.module.layer_norm(inp, scale, bias), leaves, arrays, scalars
    )


def block(
    model: Model, arrays: Tensors, scalars: Header, drops: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``MultiHeadAttention``, or ``TransformerLayer`` where there is a ``hidden``, both ways."""
    width, heads, dropout = arrays["inp"].shape[-1], scalars["heads"], scalars["dropout"]
    outputs: Tensors = {}
    notes: dict[str, None] = {}
    for path, fused in PATHS.items():
        if "hidden" in scalars:
            module = model.module.TransformerLayer(width, heads, scalars["hidden"], dropout, fused)
        else:
            module = model.module.MultiHeadAttention(width, heads, dropout, fused)
        module.to(model.device)
        load_weights(module, {name: array for name, array in arrays.items() if "." in name})
        inp = arrays["inp"].clone().requires_grad_()
        watch = model.watch(drops)
        with watch:
            output = module(inp, arrays.get("attn_mask"))
            output.backward(arrays["upstream"])
        notes |= watch.seen
        outputs |= {f"output, {path}": output, f"gradient of inp, {path}": gradient("inp", inp)}
        outputs |= gradients(module, path)
    return outputs, list(notes)


def train(
    model: Model, arrays: Tensors, scalars: Header, drops: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """Loss and gradients of ``DecoderLM`` both ways at the weights of each step, the first axis of arrays."""
    sizes = {name: scalars[name] for name in SIZES}
    results: dict[str, list[Tensor]] = {}
    notes: dict[str, None] = {}
    for path, fused in PATHS.items():
        language = model.module.DecoderLM(**sizes, dropout=scalars["dropout"], use_fused_kernel=fused)
        language.to(model.device)
        for step in range(arrays["tokens"].shape[0]):
            load_weights(language, {name: array[step] for name, array in arrays.items() if "." in name})
            tokens, mask, counted = (arrays[name][step] for name in ("tokens", "attn_mask", "counted"))
            language.zero_grad(set_to_none=True)
            watch = model.watch(drops)
            with watch:
                loss = _loss(language(tokens[:, :-1], mask), tokens[:, 1:], counted)
                torch.autograd.backward(loss)
            notes |= watch.seen
            if watch.drops != len(drops):
                raise FaultError(
                    f"dropout is applied {watch.drops} times, the model has {len(drops)} places for it"
                )
            for name, value in {f"loss, {path}": loss.detach(), **gradients(language, path)}.items():
                results.setdefault(name, []).append(value)
    return {name: torch.stack(values) for name, values in results.items()}, list(notes)


def begin(model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """Make ready to train: the model with its weights, an optimizer, the text."""
    sizes = {name: scalars[name] for name in SIZES}
    torch.manual_seed(scalars["seed"])
    language = model.module.DecoderLM(**sizes, dropout=scalars["dropout"], use_fused_kernel=scalars["fused"])
    language.to(model.device)
    load_weights(language, {name: array for name, array in arrays.items() if "." in name})
    torch.manual_seed(scalars["seed"])
    text = {name: arrays[name] for name in ("tokens", "attn_mask", "counted")}
    on_device = model.device == "cuda"  # where a graph can hold what counts the steps
    optimizer = torch.optim.Adam(language.parameters(), lr=scalars["rate"], capturable=on_device)
    model.kept = Training(language, optimizer, text, scalars["batch"])
    return {}, []


def capture(model: Model, __: Tensors, ___: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """Record a step as a CUDA graph, which all further steps launch."""
    assert isinstance(model.kept, Training)
    model.kept.capture(model)
    return {}, []


def steps(model: Model, __: Tensors, scalars: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """The losses of the next ``steps`` steps."""
    assert isinstance(model.kept, Training)
    losses = [model.kept.step() for _ in range(scalars["steps"])]
    return {"losses": torch.stack(losses)}, []


def _loss(logits: Tensor, targets: Tensor, counted: Tensor) -> Tensor:
    """Mean cross entropy of the targets that count."""
    each = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none")
    return (each * counted.flatten()).sum() / counted.sum()


FUNCTIONS: Mapping[str, Function] = {
    "attn_softmax": attn_softmax,
    "layer_norm": layer_norm,
    "block": block,
    "train": train,
    "begin": begin,
    "capture": capture,
    "steps": steps,
}
