"""Calls a student's ``rglru.py`` in the runner: its function, its layer, and a language model around it.

``rglru_layer.py`` beside this file says what arrays and scalars the judge sends. This file is loaded only in
the runner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import kernels
import torch
from torch.nn import functional

from grader.runner.model import differentiated, gradient, gradients, load_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from grader.runner.model import Function, Model, Tensors
    from grader.runner.protocol import Header

KERNELS = kernels
PATHS = {"fused": True, "unfused": False}


def recurrence(
    model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """``rglru`` of inp, gx and ga [B, L, R], c [R] and h0 [B, R] or none."""
    leaves = {
        name: arrays[name].requires_grad_() for name in ("inp", "gx", "ga", "c", "h0") if name in arrays
    }
    gx, ga, c, h0 = leaves["gx"], leaves["ga"], leaves["c"], leaves.get("h0")
    return differentiated(model, lambda inp: model.module.rglru(inp, gx, ga, c, h0), leaves, arrays, scalars)


def layer(model: Model, arrays: Tensors, _: Header, __: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """``RGLRU`` both ways."""
    outputs: Tensors = {}
    notes: dict[str, None] = {}
    for path, fused in PATHS.items():
        module = model.module.RGLRU(arrays["inp"].shape[-1], fused)
        module.to(model.device)
        load_weights(module, {name: array for name, array in arrays.items() if name == "c" or "." in name})
        inp, h0 = (arrays[name].clone().requires_grad_() for name in ("inp", "h0"))
        watch = model.watch()
        with watch:
            output = module(inp, h0)
            output.backward(arrays["upstream"])
        notes |= watch.seen
        outputs |= {f"output, {path}": output, f"gradient of inp, {path}": gradient("inp", inp)}
        outputs |= {f"gradient of h0, {path}": gradient("h0", h0)} | gradients(module, path)
    return outputs, list(notes)


def train(model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """Losses of steps of steepest descent, both ways: embedding, layer, logits of the next token."""
    outputs: Tensors = {}
    notes: dict[str, None] = {}
    for path, fused in PATHS.items():
        embedding, logits = (arrays[name].clone().requires_grad_() for name in ("embedding", "logits"))
        module = model.module.RGLRU(embedding.shape[1], fused)
        module.to(model.device)
        load_weights(module, {name: array for name, array in arrays.items() if name == "c" or "." in name})
        optimizer = torch.optim.SGD([embedding, logits, *module.parameters()], lr=scalars["rate"])
        losses = []
        for tokens in arrays["tokens"]:
            optimizer.zero_grad(set_to_none=True)
            watch = model.watch()
            with watch:
                states = module(functional.embedding(tokens[:, :-1], embedding))
                loss = functional.cross_entropy((states @ logits.T).flatten(0, 1), tokens[:, 1:].flatten())
                torch.autograd.backward(loss)
            notes |= watch.seen
            optimizer.step()
            losses.append(loss.detach())
        outputs[f"loss, {path}"] = torch.stack(losses)
    return outputs, list(notes)


FUNCTIONS: Mapping[str, Function] = {"recurrence": recurrence, "layer": layer, "train": train}
