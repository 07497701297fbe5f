"""Choice between tensors: out = a where condition is true, else b."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .tensors import Array, Operands


def formula(operands: Operands) -> tuple[Array, ...]:
    """The chosen elements."""
    return (_chosen(operands["condition"], operands["a"], operands["b"]),)


def _chosen(condition: Array, a: Array, b: Array) -> Array:
    chosen: Array = np.where(condition != 0, a, b)
    return chosen


def pytorch(operands: Mapping[str, Any]) -> object:
    """PyTorch's ``where``."""
    import torch  # noqa: PLC0415 - only timing needs PyTorch here

    return torch.where(operands["condition"].view(torch.bool), operands["a"], operands["b"])


PROBLEM = Operator(
    id="where",
    operands=("condition", "a", "b"),
    numbers=("a", "b"),
    fixed=(("condition", "bool"),),
    formula=formula,
    pytorch=pytorch,
    bugs={
        "a and b are swapped": lambda of: _chosen(of["condition"], of["b"], of["a"]),
        "out is a everywhere": lambda of: of["a"] + 0 * of["condition"],
        "out is b everywhere": lambda of: of["b"] + 0 * of["condition"],
    },
).problem
