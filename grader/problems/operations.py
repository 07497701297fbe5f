"""Programs of generic operations as plain data: what the kernels of ``generic.cu`` are asked to do, in order.

A program reads the arrays of an entry point by their names, writes its outputs, and uses temporaries for
what lies between. Whoever runs it allocates ``temporaries(program, names)`` and enqueues one kernel per
operation on one stream.

Layer: standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MOST_DIMENSIONS = 4


class Kind(StrEnum):
    """Which kernel of ``generic.cu`` runs an operation."""

    MAP = "map"
    ZIP = "zip"
    REDUCE = "reduce"


FUNCTIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.MAP: ("exp", "sqrt", "add constant", "multiply constant", "hide future"),
    Kind.ZIP: ("add", "subtract", "multiply", "divide"),
    Kind.REDUCE: ("sum", "max"),
}
"""Per kind, the functions in the order in which ``generic.cu`` numbers them."""


@dataclass(frozen=True)
class Tensor:
    """A view of the float32 array ``name``; strides count elements, 0 broadcasts."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def broadcast(self, shape: tuple[int, ...]) -> Tensor:
        """This tensor as ``shape``: dimensions of size 1 repeat.

        Raises:
            ValueError: a dimension is neither 1 nor the one of ``shape``.
        """
        if len(shape) != len(self.shape) or any(
            own not in {1, wanted} for own, wanted in zip(self.shape, shape, strict=True)
        ):
            raise ValueError(f"{self.name} of shape {self.shape} does not broadcast to {shape}")
        strides = (
            0 if own == 1 != wanted else stride
            for own, wanted, stride in zip(self.shape, shape, self.strides, strict=True)
        )
        return Tensor(self.name, shape, tuple(strides))


@dataclass(frozen=True)
class Operation:
    """One kernel: ``output = function(inputs)`` element by element, or along ``axis`` for a reduction.

    Inputs of a map or zip have the output's shape. The input of a reduction has it but for ``axis``, where
    the output has 1. ``constant`` is the second operand of "add constant" and "multiply constant"; "hide
    future" writes -inf where the last index exceeds the one before it.
    """

    kind: Kind
    function: str
    output: Tensor
    inputs: tuple[Tensor, ...]
    axis: int = 0
    constant: float = 0.0

    @property
    def code(self) -> int:
        """The function's number in ``generic.cu``."""
        return FUNCTIONS[self.kind].index(self.function)


def dense(name: str, *shape: int) -> Tensor:
    """A row-major tensor over the array ``name``."""
    return Tensor(name, shape, tuple(prod(shape[axis + 1 :]) for axis in range(len(shape))))


def mapped(name: str, function: str, operand: Tensor, constant: float = 0.0) -> Operation:
    """``name = function(operand)``, element by element."""
    return Operation(Kind.MAP, function, dense(name, *operand.shape), (operand,), constant=constant)


def zipped(name: str, function: str, left: Tensor, right: Tensor) -> Operation:
    """``name = function(left, right)``, with dimensions of size 1 broadcast."""
    shape = tuple(max(pair) for pair in zip(left.shape, right.shape, strict=True))
    operands = left.broadcast(shape), right.broadcast(shape)
    return Operation(Kind.ZIP, function, dense(name, *shape), operands)


def reduced(name: str, function: str, operand: Tensor, axis: int) -> Operation:
    """``name = function(operand)`` along ``axis``, which stays with size 1."""
    shape = tuple(1 if index == axis else size for index, size in enumerate(operand.shape))
    return Operation(Kind.REDUCE, function, dense(name, *shape), (operand,), axis=axis)


def temporaries(program: Collection[Operation], known: Collection[str]) -> Mapping[str, int]:
    """Names that ``program`` writes beyond the ``known`` arrays, with their elements at most."""
    sizes: dict[str, int] = {}
    for operation in program:
        name = operation.output.name
        if name not in known:
            sizes[name] = max(sizes.get(name, 0), prod(operation.output.shape))
    return sizes
