"""Addition of tensors: out = a + alpha b."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .tensors import Operator, multiply_add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .tensors import Array, Operands


def formula(operands: Operands) -> tuple[Array, ...]:
    """The sum, rounded after the product as well, or once."""
    return multiply_add(operands["alpha"], operands["b"], operands["a"])


def pytorch(operands: Mapping[str, Any]) -> object:
    """PyTorch's ``add``; a number comes second there."""
    import torch  # noqa: PLC0415 - only timing needs PyTorch here

    return torch.add(operands["a"], operands["b"], alpha=operands["alpha"])


PROBLEM = Operator(
    id="add",
    operands=("a", "b"),
    numbers=("a", "b"),
    scalars=("alpha",),
    formula=formula,
    pytorch=pytorch,
    bugs={
        "alpha is not applied": lambda of: of["a"] + of["b"],
        "alpha is applied to a instead of b": lambda of: of["alpha"] * of["a"] + of["b"],
        "alpha is applied to both": lambda of: of["alpha"] * (of["a"] + of["b"]),
        "alpha b is subtracted": lambda of: of["a"] - of["alpha"] * of["b"],
        "out is a alone": lambda of: of["a"] + 0 * of["b"],
    },
).problem
