"""From a case with its inputs to the call that a device runs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import (
    ArrayArgument,
    Call,
    HandleArgument,
    Memory,
    ScalarArgument,
    Schedule,
    Step,
    StreamArgument,
    Watched,
)
from grader.problems import written
from grader.problems.problem import (
    STRUCT,
    ArrayParameter,
    HandleParameter,
    KernelProblem,
    ModelProblem,
    Role,
    ScalarParameter,
    StructParameter,
    called_once,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from grader.devices.device import Argument, Launches
    from grader.problems.problem import Case, Inputs, Problem, Scalar


def case_call(
    problem: Problem,
    case: Case,
    inputs: Inputs,
    seconds: float,
    memory: Memory,
    schedule: Schedule = Schedule.PROGRAM,
    launches: Launches | None = None,
) -> Call:
    """The call of a case: of a launcher, or of the function of a harness that the case names.

    Args:
        problem: that the case belongs to.
        case: what to call.
        inputs: of the case.
        seconds: of processor time of the host code, on a GPU of device time, that the call may use.
        memory: which pointers the launchers take.
        schedule: the order of execution.
        launches: who looks at the launches of a model.
    """
    if isinstance(problem, ModelProblem):
        in_order = named_arguments(inputs)
        needs = needed_calls(problem, case, seconds, memory)
        shown = tuple(
            argument
            for argument in in_order
            if not (isinstance(argument, ScalarArgument) and argument.name == written.SEED)
        )
        return Call(case.function, shown, seconds, memory, schedule, needs=needs, launches=launches)
    assert isinstance(problem, KernelProblem)
    launcher = problem.launcher(case)
    queued = {**case.queued, **_changed(launcher, case, inputs)} if case.queued else {}
    in_order = arguments(launcher, case, inputs)
    steps: tuple[Step, ...] = ()
    if problem.calls is not called_once:
        in_order, steps = _by_row(problem, case, in_order), _steps(problem, case, inputs)
    return Call(launcher.entry_point, in_order, seconds, memory, schedule, case.staged, queued, several=steps)


def _steps(problem: KernelProblem, case: Case, inputs: Inputs) -> tuple[Step, ...]:
    """The calls of launchers that ``case`` makes, one after the other."""
    steps: list[Step] = []
    whole = {argument.name: argument for argument in arguments(problem, case, inputs)}
    returned: dict[str, int] = {}  # the last step that returned a pointer to that type
    for call in problem.calls(case):
        launcher = problem.launchers.get(call.launcher, problem)
        in_order: list[Argument] = []
        for parameter in launcher.parameters:
            number = call.arguments.get(parameter.name)
            if isinstance(parameter, HandleParameter):
                in_order.append(HandleArgument(parameter.name, returned[parameter.type]))
            elif isinstance(parameter, ScalarParameter):
                value = inputs.scalars[parameter.name] if number is None else number
                in_order.append(ScalarArgument(parameter.name, parameter.ctype, value))
            elif number is None:
                in_order.append(whole[parameter.name])
            else:
                array = whole[parameter.name]
                assert isinstance(array, ArrayArgument)
                in_order.append(_row(array, int(number)))
        if launcher.returns:
            returned[launcher.returns] = len(steps)
        steps.append(Step(launcher.entry_point, tuple(in_order), bool(launcher.returns)))
    return tuple(steps)


def _by_row(problem: Problem, case: Case, in_order: tuple[Argument, ...]) -> tuple[Argument, ...]:
    """The arguments, with the rows of those arrays instead of which each call gets a row."""
    names = _in_rows(problem, case)
    return tuple(
        part
        for argument in in_order
        for part in (
            [_row(argument, row) for row in range(argument.shape[0])]
            if isinstance(argument, ArrayArgument) and argument.name in names
            else [argument]
        )
    )


def _row(array: ArrayArgument, row: int) -> ArrayArgument:
    """A row of an array, which has memory of its own."""
    data = None if array.data is None else np.ascontiguousarray(array.data[row])
    return replace(array, name=_name_of_row(array.name, row), shape=array.shape[1:], data=data)


def _name_of_row(array: str, row: int) -> str:
    return f"{array}[{row}]"


def _in_rows(problem: Problem, case: Case) -> frozenset[str]:
    """The arrays of which each call of a launcher gets a row."""
    if not isinstance(problem, KernelProblem):
        return frozenset()
    arrays = {array.name for array in problem.arrays}
    return frozenset(name for call in problem.calls(case) for name in call.arguments if name in arrays)


def _changed(launcher: KernelProblem, case: Case, inputs: Inputs) -> dict[str, Scalar]:
    """Other values of the real scalars that are no sizes, for the call behind a staged one."""
    return {
        parameter.name: 2 * inputs.scalars[parameter.name] or 1.0
        for parameter in launcher.parameters
        if isinstance(parameter, ScalarParameter)
        and parameter.ctype in {"float", "double"}
        and parameter.name not in case.sizes
    }


def arguments(problem: KernelProblem, case: Case, inputs: Inputs) -> tuple[Argument, ...]:
    """The arguments of a launcher in its order."""
    in_order: list[Argument] = []
    for parameter in problem.parameters:
        name = parameter.name
        if isinstance(parameter, ScalarParameter):
            in_order.append(ScalarArgument(name, parameter.ctype, inputs.scalars[name]))
        elif isinstance(parameter, StructParameter):
            in_order.append(_of_structs(parameter, inputs))
        elif isinstance(parameter, ArrayParameter):
            if parameter.role is Role.OUTPUT:
                in_order.append(ArrayArgument(name, parameter.dtype, inputs.outputs[name], None))
            else:
                data = inputs.arrays[name]
                shape = () if data is None else data.shape
                constant = parameter.role is Role.INPUT
                in_order.append(
                    ArrayArgument(name, parameter.dtype, shape, data, null=data is None, constant=constant)
                )
        else:
            streams = sum(isinstance(argument, StreamArgument) for argument in in_order)
            in_order.append(StreamArgument(name, 0 if case.same_stream else streams))
    return tuple(in_order)


def _of_structs(parameter: StructParameter, inputs: Inputs) -> Argument:
    """The argument of a parameter that is a struct, or points to structs."""
    name, struct = parameter.name, parameter.struct
    if parameter.role is None:
        fields = tuple((field.dtype, inputs.scalars[whole]) for whole, field in parameter.fields.items())
        return ScalarArgument(name, STRUCT, fields)
    if parameter.role is Role.OUTPUT:
        whole, first = next(iter(parameter.fields.items()))
        shape = inputs.outputs[whole]
        shape = (*shape[: len(shape) - len(first.shape)], struct.bytes)
        return ArrayArgument(name, "uint8", shape, None, struct=struct.name)
    memory = struct.packed(
        {field.name: _not_null(inputs, whole) for whole, field in parameter.fields.items()}
    )
    constant = parameter.role is Role.INPUT
    return ArrayArgument(name, "uint8", memory.shape, memory, constant=constant, struct=struct.name)


def _not_null(inputs: Inputs, name: str) -> NDArray[np.generic]:
    array = inputs.arrays[name]
    assert array is not None
    return array


def by_field(
    problem: Problem, case: Case, arrays: Mapping[str, NDArray[np.generic]]
) -> dict[str, NDArray[np.generic]]:
    """``arrays`` that came back from a call of ``case``, with the fields of structs instead of these.

    Rows that were arrays of their own are together again. Each has at least one axis.
    """
    fields = dict(arrays)
    for name in _in_rows(problem, case):
        rows = itertools.takewhile(
            fields.__contains__, (_name_of_row(name, row) for row in itertools.count())
        )
        if parts := [fields.pop(row) for row in rows]:
            fields[name] = np.stack(parts)
    for parameter in _structs(problem, case):
        if parameter.name in fields:
            unpacked = parameter.struct.unpacked(fields.pop(parameter.name))
            fields |= {whole: unpacked[field.name] for whole, field in parameter.fields.items()}
    return {name: np.atleast_1d(array) for name, array in fields.items()}


def watched(
    problem: Problem, case: Case, name: str, index: tuple[int, ...], array: NDArray[np.generic]
) -> Watched:
    """Where the element of an output lies in the arrays of a call.

    Args:
        problem: of the output.
        case: of the call.
        name: of the output, or of a field of structs.
        index: of the element.
        array: the output, or the field, as it came back.
    """
    for parameter in _structs(problem, case):
        if (field := parameter.fields.get(name)) is not None:
            axes = array.ndim - len(field.shape)
            begin = _number(index[:axes], array.shape[:axes]) * parameter.struct.bytes + field.offset
            inside = _number(index[axes:], field.shape) * array.itemsize
            return Watched(parameter.name, begin + inside, array.itemsize)
    if name in _in_rows(problem, case):
        row, *inside_row = index
        begin = _number(tuple(inside_row), array.shape[1:]) * array.itemsize
        return Watched(_name_of_row(name, row), begin, array.itemsize)
    return Watched(name, _number(index, array.shape) * array.itemsize, array.itemsize)


def _structs(problem: Problem, case: Case) -> tuple[StructParameter, ...]:
    return problem.launcher(case).structs if isinstance(problem, KernelProblem) else ()


def _number(index: tuple[int, ...], shape: tuple[int, ...]) -> int:
    """Of an element, in the order of memory."""
    return int(np.ravel_multi_index(index, shape)) if shape else 0


def named_arguments(inputs: Inputs) -> tuple[Argument, ...]:
    """All arrays, outputs and scalars of a case, which a function of a harness takes by name."""
    named: list[Argument] = []
    for name, data in inputs.arrays.items():
        dtype, shape = ("float32", ()) if data is None else (str(data.dtype), data.shape)
        named.append(ArrayArgument(name, dtype, shape, data, null=data is None))
    named += [ArrayArgument(name, "float32", shape, None) for name, shape in inputs.outputs.items()]
    return (
        *named,
        *(ScalarArgument(name, type(value).__name__, value) for name, value in inputs.scalars.items()),
    )


def needed_calls(
    problem: ModelProblem, case: Case, seconds: float, memory: Memory
) -> tuple[tuple[Call, int], ...]:
    """The calls of launchers that a model must make in ``case``, with inputs of their own."""
    return tuple(
        (
            Call(launcher.entry_point, arguments(launcher, needed, launcher.inputs(needed)), seconds, memory),
            times,
        )
        for launcher, needed, times in problem.needs(case)
    )
