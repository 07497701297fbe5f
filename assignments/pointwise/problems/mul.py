"""Multiplication of tensors: out = a b."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tensors import Operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .tensors import Array, Operands


def formula(operands: Operands) -> tuple[Array, ...]:
    """The product."""
    return (operands["a"] * operands["b"],)


def pytorch(operands: Mapping[str, Any]) -> object:
    """PyTorch's ``mul``."""
    import torch  # noqa: PLC0415 - only timing needs PyTorch here

    return torch.mul(operands["a"], operands["b"])


PROBLEM = Operator(
    id="mul",
    operands=("a", "b"),
    numbers=("a", "b"),
    formula=formula,
    pytorch=pytorch,
    bugs={
        "a and b are added": lambda of: of["a"] + of["b"],
        "a is multiplied by itself": lambda of: of["a"] * of["a"] + 0 * of["b"],
    },
).problem
