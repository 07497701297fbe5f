"""A problem's program of generic operations with something wrong in it, computed by numpy.

The program that the speed is measured against says step by step what a problem computes. With one input in
another one's place, or with a reduction that gives threads less than the whole, it gives what a kernel with
that fault would, for any problem that has a program.

Layer: imports numpy and the operations.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.problems.operations import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.operations import Operation, Tensor

    Array = NDArray[np.float64]
    Reduction = Callable[[Array, np.ufunc], Array]

_MAPS: Mapping[str, Callable[[Array, float], Array]] = {
    "exp": lambda x, _: np.exp(x),
    "sqrt": lambda x, _: np.sqrt(x),
    "add constant": lambda x, constant: x + constant,
    "multiply constant": lambda x, constant: x * constant,
    "hide future": lambda x, _: np.where(np.triu(np.ones(x.shape[-2:], np.bool_), k=1), -np.inf, x),
}
_ZIPS: Mapping[str, np.ufunc] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
}
_REDUCTIONS: Mapping[str, np.ufunc] = {"sum": np.add, "max": np.maximum}


def row_result(values: Array, combine: np.ufunc) -> Array:
    """What a right reduction gives to all columns of a row."""
    return np.asarray(combine.reduce(values, axis=-1, keepdims=True))


@dataclass(frozen=True)
class Steps:
    """A program and the arrays that it reads.

    Attributes:
        program: the operations.
        arrays: the inputs by name, in the shapes in which the program reads them.
        faulty: what takes the place of reductions along a row, by their place in the program. Such a one may
            give each column something of its own.
        whole: the arrays as they were before a part was taken; none where none was.
        window: that part: indices of the leading axes.
        queries: what hides the future in the place of the row's number; None for that itself.
        left_out: operations that leave the columns from a number on as they were; None where none does.
    """

    program: Sequence[Operation]
    arrays: Mapping[str, Array]
    faulty: Mapping[int, Reduction] = field(default_factory=dict)
    whole: Mapping[str, Array] = field(default_factory=dict)
    window: tuple[slice, ...] = ()
    queries: NDArray[np.intp] | None = None
    left_out: tuple[range, int] | None = None

    @property
    def reductions(self) -> tuple[int, ...]:
        """The places of the reductions along the last axis: over the columns of a row."""
        return tuple(index for index, operation in enumerate(self.program) if _along_rows(operation))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of what is computed element by element."""
        return tuple(map(max, zip(*(operation.output.shape for operation in self.program), strict=True)))

    def part(self, window: tuple[slice, ...]) -> Steps:
        """The steps on some indices of the leading axes alone; what is summed over those axes is lost."""
        arrays = {name: _cut(array, window) for name, array in self.arrays.items()}
        return replace(self, arrays=arrays, whole=self.arrays, window=window)

    def source(self, name: str) -> Array:
        """An array before a part was taken of it."""
        return self.whole.get(name, self.arrays[name])

    def row_numbers(self, shape: tuple[int, ...]) -> NDArray[np.intp]:
        """The numbers of the rows of an array of that ``shape``, as far as they are in this part."""
        return _cut(np.arange(prod(shape[:-1])).reshape(*shape[:-1], 1), self.window)[..., 0]

    def outputs(self) -> Mapping[str, Array]:
        """All arrays that the program writes. What belongs to a row alone is what its first column has."""
        memory = dict(self.arrays)
        columns = {}
        for index, operation in enumerate(self.program):
            operands = [memory[operand.name] for operand in operation.tensors]
            memory[operation.output.name] = self._with_rest(index, operation, operands)
            columns[operation.output.name] = operation.output.shape[-1]
        return {name: memory[name][..., :count] for name, count in columns.items()}

    def _with_rest(self, index: int, operation: Operation, operands: Sequence[Array]) -> Array:
        """What an operation gives where it may leave out the last columns."""
        if self.left_out is None or index not in self.left_out[0]:
            return self._applied(index, operation, operands)
        count, columns = self.left_out[1], self.shape[-1]
        if _along_rows(operation):
            start = 0.0 if operation.function == "sum" else -np.inf
            combine = _REDUCTIONS[operation.function]
            return np.asarray(combine.reduce(operands[0][..., :count], axis=-1, keepdims=True, initial=start))
        applied = self._applied(index, operation, operands)
        if applied.shape[-1] != columns or operands[0].shape != applied.shape:
            return applied
        return np.concatenate([applied[..., :count], operands[0][..., count:]], axis=-1)

    def _applied(self, index: int, operation: Operation, operands: Sequence[Array]) -> Array:
        if operation.function == "hide future" and self.queries is not None:
            hidden = np.arange(operands[0].shape[-1]) > self.queries[..., None]
            return np.where(hidden, -np.inf, operands[0])
        if operation.kind is Kind.MAP:
            return _MAPS[operation.function](operands[0], operation.constant)
        if operation.kind is Kind.ZIP:
            return np.asarray(_ZIPS[operation.function](*operands))
        combine = _REDUCTIONS[operation.function]
        if _along_rows(operation):
            return self.faulty.get(index, row_result)(operands[0], combine)
        return np.asarray(combine.reduce(operands[0], axis=operation.axis, keepdims=True))


def steps_of(program: Sequence[Operation], arrays: Mapping[str, NDArray[np.generic] | None]) -> Steps:
    """The steps of ``program``, with those of the ``arrays`` that it reads."""
    read: dict[str, Tensor] = {}
    for operation in reversed(program):
        read |= {operand.name: operand for operand in operation.tensors}
    return Steps(
        program,
        {
            name: array.astype(np.float64).reshape(_own_shape(read[name]))
            for name, array in arrays.items()
            if array is not None and name in read
        },
    )


def _cut(array: NDArray[Any], window: tuple[slice, ...]) -> NDArray[Any]:
    """A part of an array, but for axes that it repeats."""
    return array[tuple(some if size > 1 else slice(None) for some, size in zip(window, array.shape))]  # noqa: B905


def _own_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape of what a tensor repeats."""
    return tuple(
        1 if stride == 0 else size for size, stride in zip(tensor.shape, tensor.strides, strict=True)
    )


def _along_rows(operation: Operation) -> bool:
    return operation.kind is Kind.REDUCE and operation.axis == len(operation.output.shape) - 1
