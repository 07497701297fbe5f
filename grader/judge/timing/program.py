"""How the baseline's kernels are called: from an operation to the arguments of a library's function."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from grader.devices.timed import Step
from grader.problems.dtypes import DTYPES
from grader.problems.operations import MOST_DIMENSIONS, PLAIN, TYPED, Kind, Tensor, multiply_adds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grader.problems.operations import Operation

    Argument = tuple[str, object]

MOST_OPERANDS = 3
IN_FLOAT, IN_DOUBLE, IN_INTEGER = range(3)  # what a kernel of typed.cu computes in
WITH_CONSTANT = {"add constant": "add", "multiply constant": "multiply"}
STREAM: Argument = ("stream", 0)
UNWRITTEN: Argument = ("array", 0)  # every call has one


def step(operation: Operation, numbers: Mapping[str, int]) -> Step:
    """``operation`` as a call of its kernel; ``numbers`` gives the number of each array by its name.

    An output of which a kernel writes a part is passed as ``changed``: the rest must stay as it is.
    """
    if len(operation.output.shape) > MOST_DIMENSIONS:
        raise ValueError(f"{operation.function} has more than {MOST_DIMENSIONS} dimensions")
    return _plain(operation, numbers) if operation.plain else _typed(operation, numbers)


def arithmetic(program: Iterable[Operation]) -> tuple[Step, ...]:
    """The multiplications with an addition of ``program`` and nothing else, one kernel for each type.

    Raises:
        ValueError: it has none, or of a type of which it is not known how fast a GPU can be.
    """
    return tuple(
        Step("launch_multiply_adds", (UNWRITTEN, ("long", count), ("int", int(dtype != "float32")), STREAM))
        for dtype, count in multiply_adds(program).items()
    )


def _plain(operation: Operation, numbers: Mapping[str, int]) -> Step:
    out = operation.output
    arguments: list[Argument] = [
        ("int", PLAIN[operation.kind].index(operation.function)),
        ("int", len(out.shape)),
        ("ints", out.shape),
    ]
    for tensor in (out, *operation.tensors):
        arguments += [("array", numbers[tensor.name]), ("ints", tensor.strides)]
    if operation.kind is Kind.MAP:
        arguments.append(("float", operation.constant))
    if operation.kind is Kind.REDUCE:
        arguments += [
            ("int", operation.axis),
            ("int", operation.tensors[0].shape[operation.axis]),
        ]
    return Step(f"baseline_{operation.kind}", (*arguments, STREAM))


def _typed(operation: Operation, numbers: Mapping[str, int]) -> Step:
    kind = Kind.MAP if operation.kind is Kind.ZIP else operation.kind
    function, inputs = operation.function, operation.inputs
    if function in WITH_CONSTANT:
        function, inputs = WITH_CONSTANT[function], (*inputs, operation.constant)
    function = "amax" if function == "max" else function
    if function not in TYPED[kind]:
        raise ValueError(f"the baseline has no {kind} {operation.function!r}")
    shape, compute = operation.output.shape, computed_in(operation)
    around = {
        Kind.MAP: _around_map,
        Kind.REDUCE: _around_reduce,
        Kind.SCAN: _around_scan,
        Kind.MATMUL: _around_matmul,
        Kind.INDEXED: _around_indexed,
        Kind.SEGMENT: _around_map,
        Kind.CONVOLUTION: _around_convolution,
        Kind.SORT: _around_scan,
    }[kind](operation)
    arguments: list[Argument] = [
        ("int", TYPED[kind].index(function)),
        ("int", compute),
        ("int", len(shape)),
        *around,
        ("changed" if operation.partial else "array", numbers[operation.output.name]),
        *_view(operation.output),
    ]
    for one in inputs:
        if isinstance(one, Tensor):
            arguments += [("array", numbers[one.name]), *_view(one)]
        else:
            bits = int(one) if compute == IN_INTEGER else struct.unpack("<q", struct.pack("<d", one))[0]
            arguments += _number(bits, len(shape))
    if kind is Kind.MAP:
        for _ in range(MOST_OPERANDS - len(inputs)):
            arguments += _number(0, len(shape))
    return Step(f"typed_{kind}", (*arguments, STREAM))


def computed_in(operation: Operation) -> int:
    """The widest of: double where an element is float64, float where it is another floating-point number."""
    dtypes = {one.dtype for one in (operation.output, *operation.tensors)}
    if "float64" in dtypes:
        return IN_DOUBLE
    inexact = any(isinstance(one, float) for one in operation.inputs) or operation.constant
    return IN_FLOAT if inexact or any(not DTYPES[name].exact for name in dtypes) else IN_INTEGER


def _view(tensor: Tensor) -> tuple[Argument, ...]:
    return (
        ("int", list(DTYPES).index(tensor.dtype)),
        ("ints", tensor.strides),
        ("long", tensor.offset),
    )


def _number(bits: int, dimensions: int) -> tuple[Argument, ...]:
    return ("pointer", None), ("int", 0), ("ints", (0,) * dimensions), ("long", bits)


def _around_map(operation: Operation) -> Sequence[Argument]:
    return [("ints", operation.output.shape)]


def _around_reduce(operation: Operation) -> Sequence[Argument]:
    shape = operation.output.shape
    whole = operation.tensors[0].shape
    along = [length if axis in operation.reduced_axes else 1 for axis, length in enumerate(whole)]
    return [("ints", shape), ("ints", along)]


def _around_scan(operation: Operation) -> Sequence[Argument]:
    shape = list(operation.output.shape)
    length, shape[operation.axis] = shape[operation.axis], 1
    return [("ints", shape), ("int", length), ("int", operation.axis)]


def _around_matmul(operation: Operation) -> Sequence[Argument]:
    return [("ints", operation.output.shape), ("int", operation.tensors[0].shape[2])]


def _around_indexed(operation: Operation) -> Sequence[Argument]:
    source, chosen = operation.tensors
    other = source if operation.function == "gather" else operation.output
    return [("ints", chosen.shape), ("int", operation.axis), ("int", other.shape[operation.axis])]


def _around_convolution(operation: Operation) -> Sequence[Argument]:
    image, weight = operation.tensors
    window = operation.window
    numbers = (("ints", one) for one in (window.stride, window.padding, window.dilation))
    return [
        ("ints", operation.output.shape),
        ("ints", image.shape),
        ("ints", weight.shape),
        *numbers,
        ("int", window.groups),
    ]
