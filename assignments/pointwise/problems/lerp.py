"""Linear interpolation: out = a + weight (b - a)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .tensors import FLOATS, Operator, multiply_add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .tensors import Array, Operands

HALF = 0.5


def formula(operands: Operands) -> tuple[Array, ...]:
    """PyTorch's: at weight 0 it meets ``a``, at weight 1 ``b``. A product may be fused with either."""
    a, b, weight = operands["a"], operands["b"], operands["weight"]
    one = weight.dtype.type(1)
    begins = multiply_add(weight, b - a, a)
    ends = multiply_add(a - b, one - weight, b)
    small = np.abs(weight) < HALF
    return tuple(np.where(small, *pair) for pair in zip(begins, ends, strict=True))


def pytorch(operands: Mapping[str, Any]) -> object:
    """PyTorch's ``lerp``."""
    import torch  # noqa: PLC0415 - only timing needs PyTorch here

    return torch.lerp(operands["a"], operands["b"], operands["weight"])


PROBLEM = Operator(
    id="lerp",
    operands=("a", "b", "weight"),
    numbers=("weight",),
    types=FLOATS,
    formula=formula,
    pytorch=pytorch,
    bugs={
        "a and b are swapped": lambda of: of["b"] + of["weight"] * (of["a"] - of["b"]),
        "one formula is used for all weights": lambda of: of["a"] + of["weight"] * (of["b"] - of["a"]),
        "weight b is added to a": lambda of: of["a"] + of["weight"] * of["b"],
    },
).problem
