"""Calls a student's ``rmsnorm.py`` in the runner: its module, and what it puts in place of another module.

``rmsnorm_module.py`` beside this file says what arrays and scalars the judge sends. This file is loaded only
in the runner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import kernels
import torch

from grader.runner.model import FaultError, differentiated, gradient, load_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from grader.runner.model import Function, Model, Tensors
    from grader.runner.protocol import Header

KERNELS = kernels


class LlamaRMSNorm(torch.nn.Module):
    """What models have: a weight and an epsilon, in float32 whatever comes in."""

    def __init__(self, weight: Tensor, epsilon: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight)
        self.variance_epsilon = epsilon


def norm(model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]) -> tuple[Tensors, list[str]]:
    """``RMSNorm`` of inp [..., H] with a weight [H]."""
    module = model.module.RMSNorm(arrays["weight"].numel(), scalars["epsilon"])
    module.to(model.device, arrays["weight"].dtype)
    load_weights(module, {"weight": arrays["weight"]})
    leaves = {"inp": arrays["inp"].requires_grad_(), "weight": module.weight}
    return differentiated(model, module, leaves, arrays, scalars)


def taken_over(
    model: Model, arrays: Tensors, scalars: Header, _: Sequence[Tensor]
) -> tuple[Tensors, list[str]]:
    """A step of training that moves the old module's weight, seen through the new module."""
    old = LlamaRMSNorm(arrays["weight"], scalars["epsilon"])
    new = model.module.from_llama_rmsnorm(old)
    if not isinstance(new, model.module.RMSNorm):
        raise FaultError(f"from_llama_rmsnorm returns a {type(new).__name__}, not an RMSNorm")
    if new.weight is not old.weight:
        raise FaultError(
            "the new module's weight is not the old module's: an optimizer that has the old one would not "
            "move it. Assign the parameter itself, no copy of it"
        )
    optimizer = torch.optim.SGD(old.parameters(), lr=scalars["rate"])
    watch = model.watch()
    with watch:
        before = new(arrays["inp"])
        before.backward(arrays["upstream"])
        of_weight = gradient("weight", old.weight).clone()
        optimizer.step()
        after = new(arrays["inp"])
    results = {"output": before, "gradient of weight": of_weight, "output after a step": after}
    return results, list(watch.seen)


FUNCTIONS: Mapping[str, Function] = {"norm": norm, "taken over": taken_over}
