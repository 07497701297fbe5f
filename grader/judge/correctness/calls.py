"""From a case with its inputs to the call that a device runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import (
    ArrayArgument,
    Call,
    Memory,
    ScalarArgument,
    Schedule,
    StreamArgument,
    Watched,
)
from grader.problems import written
from grader.problems.problem import (
    STRUCT,
    ArrayParameter,
    KernelProblem,
    ModelProblem,
    Role,
    ScalarParameter,
    StructParameter,
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
    in_order = arguments(launcher, case, inputs)
    queued = {**case.queued, **_changed(launcher, case, inputs)} if case.queued else {}
    return Call(launcher.entry_point, in_order, seconds, memory, schedule, case.staged, queued)


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

    Each has at least one axis.
    """
    fields = dict(arrays)
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
