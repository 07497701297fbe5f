"""The unfused baseline of a formula: its ATen operations in order, one generic kernel for each.

The formula runs on PyTorch's meta tensors, which have shapes, strides and types but no content. A result is
a temporary; a view of it, such as a transposed or sliced one, costs nothing. A cast, a concatenation and a
write to a part of an array are copies. An operation without a kernel is refused by name.

Layer: imports torch and the operations.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from grader.problems.aten import Operators, aten
from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError
from grader.problems.operations import TYPED, Kind, Operation, Tensor, Window, dense

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Scalar = int | float
    Operand = torch.Tensor | Scalar

_NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "clamp_min": "maximum",
    "clamp_max": "minimum",
}
_NAMES |= {"sgn": "sign", "floor_divide": "floor divide"}
_MAPS = {
    *(
        name.replace(" ", "_")
        for name in TYPED[Kind.MAP]
        if name not in {"copy", "arange", "hide future", "divide"}
    ),
    *_NAMES,
}
_COPIES = {"clone", "_to_copy", "copy", "convert_element_type", "lift_fresh_copy", "_unsafe_view"}
_EMPTY = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided"}
_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero": 0, "ones": 1, "ones_like": 1, "new_ones": 1}
_FILLED_WITH = {
    "full": 1,
    "full_like": 1,
    "new_full": 2,
    "fill": 1,
    "scalar_tensor": 0,
}  # place of the number
_REDUCTIONS = {"sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "max", "min"}
_ROUNDED = {"floor": "floor divide", "trunc": "trunc divide"}


def traced(
    formula: Callable[[], Mapping[str, torch.Tensor]],
    inputs: Mapping[str, torch.Tensor],
    outputs: Mapping[str, str],
    types: Mapping[str, str] | None = None,
) -> tuple[Operation, ...]:
    """The program of ``formula``.

    Args:
        formula: from meta tensors to outputs by name.
        inputs: the meta tensors of arrays, by name, which the formula uses.
        outputs: the type of each output by name; one that is an input, too, is changed in place.
        types: of the arrays, by name, where these are not of the type of their tensors.

    Raises:
        FormulaError: an operation has no kernel.
    """
    trace = _Trace(inputs, types or {})
    with trace:
        results = formula()
    return _tidied(trace.finished(results, outputs), outputs)


class _Trace(Operators):  # type: ignore[no-untyped-call]
    """Writes down the operations of a formula on meta tensors."""

    def __init__(self, inputs: Mapping[str, torch.Tensor], types: Mapping[str, str]) -> None:
        super().__init__()
        self._types = types
        self._names = {_storage(tensor): name for name, tensor in inputs.items()}
        self._inputs = set(inputs)
        self._kept: list[torch.Tensor] = list(inputs.values())  # so that no storage's number is used again
        self._numbers: dict[int, Scalar] = {}
        self._operations: list[Operation] = []

    def knows(self, name: str, args: Sequence[Any]) -> bool:  # noqa: ARG002 - of all types
        """Whether there is a kernel."""
        return name in WITH_KERNELS

    def refused(self, name: str) -> FormulaError:
        """An operation without a kernel."""
        return FormulaError(
            f"the baseline has no kernel for {name}: write the formula with other operations, or give the "
            "problem an unfused program of its own"
        )

    def run(self, name: str, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:  # noqa: ANN401
        """A result without content, and the operations that make it."""
        if func.overloadpacket.__name__ == "copy_":
            self._write(args[0], args[1])
            return args[0]
        if "device" in kwargs:
            kwargs = {**kwargs, "device": "meta"}
        if name == "lift_fresh":
            return args[0]
        result = func(*args, **kwargs)
        if func.is_view:
            return result
        if isinstance(result, torch.Tensor) and result.device.type != "meta":
            result = result.to("meta")
        self._make(name, args, kwargs, result)
        return result

    # What a result is made of.

    def _make(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:  # noqa: ANN401
        if name in _EMPTY:
            self._new(result)
        elif name in _FILLED or name in _FILLED_WITH:
            number = _FILLED[name] if name in _FILLED else args[_FILLED_WITH[name]]
            if result.dim() == 0:
                self._numbers[_storage(result)] = self._number(number)
                self._kept.append(result)
            else:
                self._map("copy", result, self._number(number))
        elif name == "arange":
            begin, _, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
            self._map("arange", result, begin, step)
        elif name in _COPIES:
            self._map("copy", result, args[0])
        elif name in self.makers:
            self.makers[name](self, args, kwargs, result)
        elif name in _REDUCTIONS:
            self._reduce(name, args, kwargs, result)
        else:
            self._arithmetic(name, args, kwargs, result)

    def _arithmetic(
        self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor
    ) -> None:
        left, *operands = args
        alpha = kwargs.get("alpha", 1)
        if alpha != 1:  # of add and sub
            scaled = torch.empty_like(operands[0] if isinstance(operands[0], torch.Tensor) else result)
            self._map("multiply", scaled, operands[0], alpha)
            operands[0] = scaled
        function = _NAMES.get(name, name.replace("_", " "))
        if name == "div":
            function = _ROUNDED.get(kwargs.get("rounding_mode") or "", function)
        if name == "bitwise_not" and result.dtype is torch.bool:
            function = "logical not"
        self._map(function, result, left, *operands)

    def _reduce(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:  # noqa: ANN401
        array = args[0]
        axes = args[1] if len(args) > 1 and args[1] is not None else kwargs.get("dim")
        axes = range(array.dim()) if axes is None or axes == [] else [axes] if isinstance(axes, int) else axes
        reduced = {axis % max(1, array.dim()) for axis in axes}
        pairs: list[tuple[str, torch.Tensor]] = [(name, result)]
        if name in {"max", "min"}:
            both = (result,) if isinstance(result, torch.Tensor) else result
            pairs = list(zip((f"a{name}", f"arg{name}"), both, strict=False))
        source = self._view(array)
        shape = tuple(1 if axis in reduced else size for axis, size in enumerate(source.shape))
        for function, tensor in pairs:
            output = dense(self._new(tensor), *shape, dtype=_dtype(tensor))
            self._operations.append(
                Operation(Kind.REDUCE, function, output, (source,), axis=min(reduced, default=0))
            )

    def _where(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        self._map("where", result, *args)

    def _masked(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        before, mask, value = args
        self._map("where", result, mask, value, before)

    def _reversed(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        self._map("subtract", result, args[1], args[0])

    def _clamped(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> None:
        bounds = dict(zip(("min", "max"), args[1:], strict=False)) | dict(kwargs)
        low, high = bounds.get("min"), bounds.get("max")
        raised = result if high is None else torch.empty_like(result)
        if low is not None:
            self._map("maximum", raised, args[0], low)
        if high is not None:
            self._map("minimum", result, args[0] if low is None else raised, high)

    def _relu(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        self._map("maximum", result, args[0], 0)

    def _power(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        base, power = args
        if not isinstance(power, torch.Tensor) and power == 2:
            self._map("multiply", result, base, base)
        elif not isinstance(power, torch.Tensor) and power == 0.5:
            self._map("sqrt", result, base)
        else:
            self._map("pow", result, base, power)

    def _sums(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        self._scan("cumsum", args[0], args[1], result)

    def _products(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        self._scan("cumprod", args[0], args[1], result)

    def _scan(self, function: str, terms: torch.Tensor, axis: int, result: torch.Tensor) -> None:
        source, output = self._view(terms), self._dense(result)
        operation = Operation(Kind.SCAN, function, output, (source,), axis=axis % max(1, terms.dim()))
        self._operations.append(operation)

    def _matrices(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        self._new(result)
        three = [matrix if matrix.dim() == 3 else matrix[None] for matrix in (result, *args)]
        output, *operands = (self._view(matrix) for matrix in three)
        self._operations.append(Operation(Kind.MATMUL, "matmul", output, tuple(operands)))

    def _convolved(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        image, weight, bias, stride, padding, dilation, transposed, _rest, groups = args
        if transposed:
            raise FormulaError("the baseline has no kernel for a transposed convolution")
        plain = result if bias is None else torch.empty_like(result)
        operands, output = (self._view(image), self._view(weight)), self._dense(plain)
        window = Window(tuple(stride), tuple(padding), tuple(dilation), groups)
        operation = Operation(Kind.CONVOLUTION, "convolution", output, operands, window=window)
        self._operations.append(operation)
        if bias is not None:
            self._map("add", result, plain, bias.reshape(-1, *(1,) * (result.dim() - 2)))

    def _sorted(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: Sequence[torch.Tensor]) -> None:
        options = dict(zip(("dim", "descending"), args[1:], strict=False)) | dict(kwargs)
        axis = options.get("dim", -1) % max(1, args[0].dim())
        order = " descending" if options.get("descending") else ""
        source = self._view(args[0])
        for function, tensor in zip(("sort", "argsort"), result, strict=True):
            operation = Operation(Kind.SORT, function + order, self._dense(tensor), (source,), axis=axis)
            self._operations.append(operation)

    def _segments(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> None:
        terms, reduce = args[:2]
        if reduce != "sum" or kwargs.get("offsets") is None or kwargs.get("axis", 0) != 0:
            raise FormulaError("the baseline's segments are sums along the first dimension, between offsets")
        offsets = kwargs["offsets"].reshape(-1, *(1,) * (terms.dim() - 1))
        operands = self._view(terms), self._view(offsets)
        operation = Operation(Kind.SEGMENT, "segment sum", self._dense(result), operands)
        self._operations.append(operation)

    def _joined(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> None:
        parts, axis = args[0], (args[1] if len(args) > 1 else kwargs.get("dim", 0))
        self._new(result)
        begin = 0
        for part in parts:
            self._write(result.narrow(axis, begin, part.shape[axis]), part)
            begin += part.shape[axis]

    def _replaced(self, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> None:
        """slice_scatter and select_scatter: a copy of an array, in which a part is replaced."""
        before, part, *position = args
        self._map("copy", result, before)
        if isinstance(position[1] if len(position) > 1 else None, int) and part.dim() < before.dim():
            self._write(aten.select(result, *position), part)
        else:
            self._write(aten.slice(result, *position, **kwargs), part)

    # Elements at places that an array of integers says.

    def _gathered(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        source, axis, index = args
        shape = list(index.shape)
        shape[axis] = source.shape[axis]
        narrowed = source.as_strided(shape, source.stride(), source.storage_offset())
        self._pick(narrowed, index, axis % source.dim(), result)

    def _selected(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        source, axis, index = args
        axis %= source.dim()
        shown = index.reshape([-1 if dimension == axis else 1 for dimension in range(source.dim())])
        self._pick(source, shown.expand(result.shape), axis, result)

    def _embedded(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        table, index = args[:2]
        self._take(table, 0, index, result)

    def _indexed(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        source, chosen = args
        axis, index = self._one_index(chosen)
        self._take(source, axis, index, result)

    def _take(self, source: torch.Tensor, axis: int, index: torch.Tensor, result: torch.Tensor) -> None:
        """``index`` of any shape in place of the dimension ``axis``; its first one is gathered along."""
        spread = source
        for _ in range(index.dim() - 1):
            spread = spread.unsqueeze(axis + 1)
        shape = list(result.shape)
        if index.dim() == 0:
            shape.insert(axis, 1)
        shape[axis] = source.shape[axis]
        shown = index.reshape((1,) * axis + (tuple(index.shape) or (1,)) + (1,) * (source.dim() - 1 - axis))
        shaped = result if index.dim() else result.unsqueeze(axis)
        self._pick(spread.expand(shape), shown.expand(shaped.shape), axis, result, shaped)

    def _pick(
        self,
        source: torch.Tensor,
        index: torch.Tensor,
        axis: int,
        result: torch.Tensor,
        shaped: torch.Tensor | None = None,
    ) -> None:
        self._new(result)
        output = self._view(result if shaped is None else shaped)
        inputs = (self._view(source), self._view(index))
        self._operations.append(Operation(Kind.INDEXED, "gather", output, inputs, axis=axis))

    def _scattered(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        before, axis, index, source = args
        self._map("copy", result, before)
        self._put("scatter", result, axis % before.dim(), index, source)

    def _added(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        before, axis, index, source = args
        self._accumulated(before, axis % before.dim(), index, source, result)

    def _put_at(self, args: Sequence[Any], _: Mapping[str, Any], result: torch.Tensor) -> None:
        before, chosen, source, *accumulate = args
        axis, index = self._one_index(chosen)
        shape = list(before.shape)
        shape[axis : axis + 1] = index.shape
        lines = source.expand(shape).flatten(axis, axis + index.dim() - 1)
        shown = index.reshape([-1 if dimension == axis else 1 for dimension in range(before.dim())]).expand(
            lines.shape
        )
        if any(accumulate):
            self._accumulated(before, axis, shown, lines, result)
        else:
            self._map("copy", result, before)
            self._put("scatter", result, axis, shown, lines)

    def _accumulated(
        self,
        before: torch.Tensor,
        axis: int,
        index: torch.Tensor,
        source: torch.Tensor,
        result: torch.Tensor,
    ) -> None:
        """Atomic additions, which there are in 32 and 64 bits; other types are copied there and back."""
        dtype = DTYPES.get(_dtype(result))
        wide = dtype.sums if dtype else ""
        total = result if not wide else torch.empty_like(result, dtype=getattr(torch, wide))
        self._map("copy", total, before)
        self._put("scatter add", total, axis, index, source)
        if wide:
            self._map("copy", result, total)

    def _put(
        self, function: str, target: torch.Tensor, axis: int, index: torch.Tensor, source: Operand
    ) -> None:
        values = source if isinstance(source, torch.Tensor) else None
        if values is None:
            values = torch.empty(index.shape, dtype=target.dtype, device="meta")
            self._map("copy", values, source)
        if values.shape != index.shape:
            values = values.as_strided(index.shape, values.stride(), values.storage_offset())
        inputs = (self._view(values), self._view(index))
        self._operations.append(Operation(Kind.INDEXED, function, self._view(target), inputs, axis=axis))

    def _one_index(self, chosen: Sequence[torch.Tensor | None]) -> tuple[int, torch.Tensor]:
        indices = [(axis, index) for axis, index in enumerate(chosen) if index is not None]
        if len(indices) != 1 or indices[0][1].dtype is torch.bool:
            raise FormulaError(
                "the baseline takes one index of integers at a time: use where for a mask, or compute a place"
            )
        return indices[0]

    # Names, views and numbers.

    def _new(self, result: torch.Tensor) -> str:
        """The temporary of a result."""
        name = self._names.setdefault(_storage(result), f"t{len(self._names)}")
        self._kept.append(result)
        return name

    def _dense(self, result: torch.Tensor) -> Tensor:
        self._new(result)
        return self._view(result)

    def _map(self, function: str, result: torch.Tensor, *operands: Operand) -> None:
        self._operations.append(self._elementwise(function, self._dense(result), result, operands))

    def _elementwise(
        self, function: str, output: Tensor, result: torch.Tensor, operands: Sequence[Operand]
    ) -> Operation:
        inputs = tuple(
            self._view(operand.expand(result.shape)) if self._is_array(operand) else self._number(operand)  # type: ignore[union-attr]
            for operand in operands
        )
        kind = (
            Kind.ZIP
            if len(inputs) == 2 and function in {"add", "subtract", "multiply", "divide"}
            else Kind.MAP
        )
        return Operation(kind, function, output, inputs)

    def _write(self, target: torch.Tensor, source: torch.Tensor) -> None:
        """Copy to a view of an array."""
        if self._names.get(_storage(target)) in self._inputs:
            raise FormulaError(
                f"the formula changes its input {self._names[_storage(target)]}: clone it first"
            )
        if _storage(target) not in self._names:
            raise FormulaError("the formula changes a part of what has no array of its own")
        self._operations.append(self._elementwise("copy", self._view(target), target, (source,)))

    def _is_array(self, operand: Operand) -> bool:
        return (
            isinstance(operand, torch.Tensor)
            and operand.device.type == "meta"
            and _storage(operand) not in self._numbers
        )

    def _number(self, operand: Operand) -> Scalar:
        if not isinstance(operand, torch.Tensor):
            return operand
        if _storage(operand) in self._numbers:
            return self._numbers[_storage(operand)]
        if operand.numel() != 1:
            raise FormulaError("the formula has an array of constants: make it an input, or compute it")
        number: Scalar = operand.item()
        return number

    def _view(self, tensor: torch.Tensor) -> Tensor:
        name = self._names.get(_storage(tensor))
        if name is None:
            raise FormulaError("the formula uses an array that is neither an input nor computed from inputs")
        shape, strides = tuple(tensor.shape) or (1,), tuple(tensor.stride()) or (1,)
        steps = tuple(stride if size > 1 else 0 for size, stride in zip(shape, strides, strict=True))
        dtype = self._types.get(name, _dtype(tensor))
        plain = dense(name, *shape, dtype=dtype)
        view = Tensor(name, shape, steps, dtype, int(tensor.storage_offset()))
        same = all(a == b or n == 1 for n, a, b in zip(shape, strides, plain.strides, strict=True))
        return plain if same and view.offset == 0 else view

    def finished(self, results: Mapping[str, torch.Tensor], outputs: Mapping[str, str]) -> list[Operation]:
        """The operations, with a copy to each output."""
        copies = []
        for name, dtype in outputs.items():
            result = results[name]
            output = dense(name, *(tuple(result.shape) or (1,)), dtype=dtype)
            copies.append(self._elementwise("copy", output, result, (result,)))
        return [*self._operations, *copies]

    makers: ClassVar[Mapping[str, Callable[[_Trace, Sequence[Any], Mapping[str, Any], Any], None]]] = {
        "where": _where,
        "masked_fill": _masked,
        "rsub": _reversed,
        "clamp": _clamped,
        "relu": _relu,
        "pow": _power,
        "cumsum": _sums,
        "cumprod": _products,
        "mm": _matrices,
        "bmm": _matrices,
        "convolution": _convolved,
        "sort": _sorted,
        "segment_reduce": _segments,
        "cat": _joined,
        "slice_scatter": _replaced,
        "select_scatter": _replaced,
        "gather": _gathered,
        "index_select": _selected,
        "embedding": _embedded,
        "index": _indexed,
        "scatter": _scattered,
        "scatter_add": _added,
        "index_put": _put_at,
    }
    """What is more than one map, reduction or copy."""


_KNOWN = {
    *(_COPIES | _EMPTY | _REDUCTIONS),
    *(_FILLED | _FILLED_WITH),
    *_Trace.makers,
    *("arange", "lift_fresh", "rsub"),
}
WITH_KERNELS = frozenset(_KNOWN | _MAPS)
"""The operations that the baseline has kernels for, views aside."""


def _storage(tensor: torch.Tensor) -> int:
    number: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - a meta tensor has no address
    return number


def _dtype(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _tidied(program: list[Operation], outputs: Mapping[str, str]) -> tuple[Operation, ...]:
    """``program`` without what no output needs, and with results in their outputs instead of copied there."""
    for operation in reversed(program[-len(outputs) :]):
        if operation.function == "copy" and _in_place(program, operation, outputs):
            program.remove(operation)
            old, new = operation.tensors[0].name, operation.output.name
            program = [_renamed(operation, old, new) for operation in program]
    needed, used = set(outputs), []
    for operation in reversed(program):
        if operation.output.name in needed and prod(operation.output.shape) > 0:
            used.append(operation)
            needed |= {tensor.name for tensor in operation.tensors}
    return tuple(reversed(used))


def _in_place(program: Sequence[Operation], copy: Operation, outputs: Mapping[str, str]) -> bool:
    """Whether the temporary that ``copy`` reads may be the output: nothing reads what was there before."""
    source, output = copy.tensors[0], copy.output
    writes = [index for index, operation in enumerate(program) if operation.output.name == source.name]
    if not writes or replace(source, name=output.name) != output:
        return False
    copied = sum(
        operation.function == "copy" and source in operation.tensors
        for operation in program
        if operation != copy and operation.output.name in outputs
    )
    reads = [
        index for index, operation in enumerate(program) if output.name in {t.name for t in operation.tensors}
    ]
    late = [index for index in reads if index >= writes[0]]
    alone = late == writes and program[writes[0]].kind in {Kind.MAP, Kind.ZIP}
    same = alone and all(
        tensor == output for tensor in program[writes[0]].tensors if tensor.name == output.name
    )
    return not copied and (not late or same)


def _renamed(operation: Operation, old: str, new: str) -> Operation:
    def other(value: Any) -> Any:  # noqa: ANN401
        return replace(value, name=new) if isinstance(value, Tensor) and value.name == old else value

    return replace(
        operation, output=other(operation.output), inputs=tuple(other(value) for value in operation.inputs)
    )
