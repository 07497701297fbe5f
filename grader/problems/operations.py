"""Programs of generic operations as plain data: what the kernels of the baseline are asked to do, in order.

A program reads the arrays of an entry point by their names, writes its outputs, and uses temporaries for
what lies between. Whoever runs it allocates ``temporaries(program, names)`` and enqueues one kernel per
operation on one stream.

There are two sets of kernels. Those of ``generic.cu`` are for float32, and targets are calibrated on them.
An operation that is not ``plain`` takes a kernel of ``typed.cu``, which has all types, more functions, and
views at any offset.

Layer: standard library and element types.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import TYPE_CHECKING

from grader.problems.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

MOST_DIMENSIONS = 8
MOST_PLAIN_DIMENSIONS = 4  # in generic.cu


class Kind(StrEnum):
    """The kind of an operation: how it computes its output from its inputs."""

    MAP = "map"  # element by element, of up to three inputs
    ZIP = "zip"  # element by element, of two inputs
    REDUCE = "reduce"
    SCAN = "scan"
    MATMUL = "matmul"  # of matrices, or of several in a first dimension
    INDEXED = "indexed"
    SEGMENT = "segment"  # of rows, from one to the next of a list of places
    CONVOLUTION = "convolution"
    SORT = "sort"


PLAIN: Mapping[Kind, tuple[str, ...]] = {
    Kind.MAP: ("exp", "sqrt", "add constant", "multiply constant", "hide future"),
    Kind.ZIP: ("add", "subtract", "multiply", "divide"),
    Kind.REDUCE: ("sum", "max"),
}
"""Per kind, the functions of ``generic.cu`` in the order in which it numbers them."""

TYPED: Mapping[Kind, tuple[str, ...]] = {
    Kind.MAP: (
        *("copy", "arange", "hide future", "where"),
        *("add", "subtract", "multiply", "divide", "trunc divide", "floor divide", "remainder", "fmod"),
        *("maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge"),
        *("logical and", "logical or", "logical xor", "logical not", "abs", "neg", "sign"),
        *("pow", "atan2", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt"),
        *("reciprocal", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "erf", "erfc"),
        *("sigmoid", "floor", "ceil", "round", "trunc", "isnan", "isinf"),
        *("bitwise and", "bitwise or", "bitwise xor", "bitwise not"),
        *("bitwise left shift", "bitwise right shift"),
    ),
    Kind.REDUCE: ("sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin"),
    Kind.SCAN: ("cumsum", "cumprod"),
    Kind.MATMUL: ("matmul",),
    Kind.INDEXED: ("gather", "scatter", "scatter add"),
    Kind.SEGMENT: ("segment sum",),
    Kind.CONVOLUTION: ("convolution",),
    Kind.SORT: ("sort", "argsort", "sort descending", "argsort descending"),
}
"""The functions of ``typed.cu`` by kind of operation, called as in PyTorch, with spaces for underscores."""

MULTIPLIED = ("float32", "float16", "bfloat16")
"""The types of which the limit that arithmetic sets is known."""


@dataclass(frozen=True)
class Tensor:
    """A view of the array ``name``; strides and offset count elements, a stride of 0 broadcasts."""

    name: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str = "float32"
    offset: int = 0

    def broadcast(self, shape: tuple[int, ...]) -> Tensor:
        """This tensor as ``shape``: dimensions of size 1 repeat.

        Raises:
            ValueError: a dimension is neither 1 nor the one of ``shape``.
        """
        if len(shape) != len(self.shape) or any(
            size not in {1, target} for size, target in zip(self.shape, shape, strict=True)
        ):
            raise ValueError(f"{self.name} of shape {self.shape} does not broadcast to {shape}")
        strides = (
            0 if size == 1 != target else stride
            for size, target, stride in zip(self.shape, shape, self.strides, strict=True)
        )
        return Tensor(self.name, shape, tuple(strides), self.dtype, self.offset)

    @property
    def bytes(self) -> int:
        """The size of the smallest array that has all elements of this view."""
        last = sum((size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True))
        return (self.offset + last + 1) * DTYPES[self.dtype].itemsize


@dataclass(frozen=True)
class Window:
    """How a convolution's filter goes over its input, in each dimension behind batch and channels."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int


_NO_WINDOW = Window((), (), (), 1)


@dataclass(frozen=True)
class Operation:
    """One kernel: ``output = function(inputs)``.

    Inputs of a map or zip have the output's shape; a number may stand for each of them. The input of a
    reduction has the output's shape but for the dimensions that it reduces, where the output has 1;
    ``argmax`` over several dimensions gives the place in all of them together. A scan goes along ``axis``. A
    gather takes, element by element of its output, the place along ``axis`` of the first input from the
    second, which has the output's shape. A scatter writes (or adds) each element of its first input, which
    has the second's shape, to such a place of its output. ``constant`` is the second operand of "add
    constant" and "multiply constant"; "hide future" writes -inf where the last index exceeds the one before
    it. "arange" has a first number and a step as its inputs. A segment's sum adds the rows of the first input
    from one place in the second to the next, which has one place more than the output has rows. A convolution
    is one of PyTorch: [batch, channels, ...] with [outputs, channels of a group, ...] as ``window`` says. A
    sort goes along ``axis`` and keeps the order of equal elements.
    """

    kind: Kind
    function: str
    output: Tensor
    inputs: tuple[Tensor | float, ...]
    axis: int = 0
    constant: float = 0.0
    window: Window = _NO_WINDOW

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The inputs without the numbers."""
        return tuple(operand for operand in self.inputs if isinstance(operand, Tensor))

    @property
    def partial(self) -> bool:
        """Whether other elements of the output's array, which may matter, stay as they are."""
        out = self.output
        return (
            (self.kind is Kind.INDEXED and self.function != "gather")
            or self.function == "copy"
            or out.name in {tensor.name for tensor in self.tensors}
            or out != dense(out.name, *out.shape, dtype=out.dtype)
        )

    @property
    def reduced_axes(self) -> tuple[int, ...]:
        """The dimensions that a reduction goes over."""
        (source,) = self.tensors
        pairs = zip(source.shape, self.output.shape, strict=True)
        return tuple(axis for axis, (before, after) in enumerate(pairs) if before != after) or (self.axis,)

    @property
    def plain(self) -> bool:
        """Whether a kernel of ``generic.cu`` does it."""
        return (
            self.function in PLAIN.get(self.kind, ())
            and (self.kind is not Kind.REDUCE or self.reduced_axes == (self.axis,))
            and len(self.output.shape) <= MOST_PLAIN_DIMENSIONS
            and len(self.tensors) == len(self.inputs)
            and all(
                tensor.dtype == "float32" and tensor.offset == 0 for tensor in (self.output, *self.tensors)
            )
        )


def dense(name: str, *shape: int, dtype: str = "float32") -> Tensor:
    """A row-major tensor over the array ``name``."""
    return Tensor(name, shape, tuple(prod(shape[axis + 1 :]) for axis in range(len(shape))), dtype)


def mapped(name: str, function: str, operand: Tensor, constant: float = 0.0) -> Operation:
    """``name = function(operand)``, element by element."""
    output = dense(name, *operand.shape, dtype=operand.dtype)
    return Operation(Kind.MAP, function, output, (operand,), constant=constant)


def zipped(name: str, function: str, left: Tensor, right: Tensor) -> Operation:
    """``name = function(left, right)``, with dimensions of size 1 broadcast; of the type of ``left``."""
    shape = tuple(max(pair) for pair in zip(left.shape, right.shape, strict=True))
    operands = left.broadcast(shape), right.broadcast(shape)
    return Operation(Kind.ZIP, function, dense(name, *shape, dtype=left.dtype), operands)


def reduced(name: str, function: str, operand: Tensor, axis: int) -> Operation:
    """``name = function(operand)`` along ``axis``, which stays with size 1."""
    shape = tuple(1 if index == axis else size for index, size in enumerate(operand.shape))
    return Operation(Kind.REDUCE, function, dense(name, *shape, dtype=operand.dtype), (operand,), axis=axis)


def multiply_adds(program: Iterable[Operation]) -> Mapping[str, int]:
    """The multiplications with an addition that matrix products and convolutions make, by the operands' type.

    Raises:
        ValueError: there are none, or of a type of which it is not known how fast a GPU can be.
    """
    counts: Counter[str] = Counter()
    for operation in program:
        if operation.kind in {Kind.MATMUL, Kind.CONVOLUTION}:
            left, right = operation.tensors
            terms = left.shape[2:] if operation.kind is Kind.MATMUL else right.shape[1:]  # of one output
            counts[left.dtype] += prod(operation.output.shape) * prod(terms)
    if not counts or counts.keys() - set(MULTIPLIED):
        raise ValueError(
            f"arithmetic sets a limit for matrix products and convolutions of {', '.join(MULTIPLIED)}; "
            f"here are {'those of ' + ', '.join(counts) if counts else 'none'}"
        )
    return counts


def temporaries(program: Collection[Operation], arrays: Collection[str]) -> Mapping[str, int]:
    """Names that ``program`` writes beyond the ``arrays`` arrays, with their bytes at most."""
    sizes: dict[str, int] = {}
    for operation in program:
        name = operation.output.name
        if name not in arrays:
            sizes[name] = max(sizes.get(name, 0), operation.output.bytes)
    return sizes
