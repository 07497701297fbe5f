"""Runs a call on memory that the runner holds: its own memory, or a GPU's."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.devices import layout
from grader.devices.device import (
    Answer,
    ArrayArgument,
    Call,
    HandleArgument,
    Memory,
    ScalarArgument,
    Schedule,
    Status,
    StreamArgument,
)
from grader.devices.runner import RunnerError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from grader.devices.device import Argument
    from grader.devices.runner import Runner
    from grader.problems.problem import Scalar
    from grader.records.findings import Finding

    Encoded = tuple[str, Any]


def arrays(call: Call) -> list[ArrayArgument]:
    """The arrays of the call in order, without those that are passed as null."""
    pointers = (argument for argument in call.arguments if isinstance(argument, ArrayArgument))
    return [argument for argument in pointers if not argument.null]


def request(call: Call, pointers: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The request to the runner; arrays are at the addresses ``pointers``, or where the runner puts them."""
    streams = [argument.index + 1 for argument in call.arguments if isinstance(argument, StreamArgument)]
    return {
        "operation": "call",
        "calls": _steps(call, partial(_argument, call, pointers), {}),
        "streams": max(streams, default=0),
        "memory": "host" if call.memory is Memory.HOST else "device",
        "images": [layout.image_bytes(argument) for argument in arrays(call)] if pointers is None else [],
        "guard": layout.GUARD,
        "staged": _staged(call, pointers),
        "queued": _queued(call, partial(_argument, call, pointers)),
    }


def _queued(call: Call, encoded: Callable[[Argument], Encoded | None]) -> list[dict[str, Any]]:
    """The steps of the call behind a staged one."""
    return _steps(call, encoded, call.queued) if call.staged and call.queued else []


def _steps(
    call: Call, encoded: Callable[[Argument], Encoded | None], changed: Mapping[str, Scalar]
) -> list[dict[str, Any]]:
    """The steps of a call, with kind and value of each argument and the scalars in ``changed`` replaced."""

    def with_changes(argument: Argument) -> Argument:
        if isinstance(argument, ScalarArgument) and argument.name in changed:
            return replace(argument, value=changed[argument.name])
        return argument

    return [
        {
            "entry_point": step.entry_point,
            "arguments": [
                passed
                for argument in step.arguments
                if (passed := encoded(with_changes(argument))) is not None
            ],
            "returns": step.returns,
        }
        for step in call.steps
    ]


def _argument(call: Call, pointers: Mapping[str, int] | None, argument: Argument) -> Encoded:
    """Kind and value of an argument of C++."""
    match argument:
        case ArrayArgument(null=True):
            return "pointer", None
        case ArrayArgument() if pointers is not None:
            return "pointer", pointers[argument.name]
        case ArrayArgument():
            return "array", _index(call, argument)
        case ScalarArgument():
            return argument.ctype, argument.value
        case HandleArgument():
            return "handle", argument.step
        case StreamArgument():
            return "stream", argument.index


def _index(call: Call, argument: ArrayArgument) -> int:
    return [each.name for each in arrays(call)].index(argument.name)


def of_python(call: Call, pointers: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The request for a function in Python, which takes tensors, at ``pointers`` as above, and numbers.

    It gets no stream: the first one is the current stream of the call.
    """
    of_launcher = request(call, pointers)

    def encoded(argument: Argument) -> Encoded | None:
        match argument:
            case ArrayArgument(null=True):
                return "value", None
            case ArrayArgument() if pointers is not None:
                return "tensor", (pointers[argument.name], argument.dtype, argument.shape)
            case ArrayArgument():
                return "array", (_index(call, argument), argument.dtype, argument.shape)
            case ScalarArgument():
                return "value", argument.value
            case HandleArgument():
                return "handle", argument.step
        return None

    return {
        **of_launcher,
        "calls": _steps(call, encoded, {}),
        "streams": max(1, of_launcher["streams"]),
        "queued": _queued(call, encoded),
    }


def failed(header: Mapping[str, Any]) -> Answer:
    """The answer to a call that did not return."""
    raised = {"raised": Status.RAISED, "unbegun": Status.UNBEGUN}
    status = raised.get(header["status"], Status.CUDA_ERROR)
    return Answer(status, header["message"], printed=header["printed"])


def _staged(call: Call, pointers: Mapping[str, int] | None) -> list[tuple[int, int, bool]]:
    """Index or address, size, and whether it is read, of each array that is copied through the streams."""
    if not call.staged or call.memory is Memory.HOST:
        return []
    return [
        (
            index if pointers is None else pointers[argument.name],
            layout.data_bytes(argument),
            argument.data is not None,
        )
        for index, argument in enumerate(arrays(call))
    ]


def run(
    runner: Runner,
    call: Call,
    as_request: Callable[[Call], Mapping[str, Any]] = request,
    using: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Answer:
    """Send the arrays, make the call and read them back; never raises for what the student's code does.

    Args:
        runner: that makes it.
        call: what to call.
        as_request: makes the request for it of a call.
        using: makes a context in which the runner may use the device.
    """
    again = call.schedule is not Schedule.PROGRAM
    before = [layout.image(argument, again=again) for argument in arrays(call)]
    size = sum(image.nbytes for image in before)
    try:
        frame = runner.ask(as_request(call), [image.data for image in before], size, call.seconds, using)
    except RunnerError as error:
        return error.answer
    printed = frame.header["printed"]
    if frame.header["status"] != "returned":
        return failed(frame.header)
    if len(frame.payload) != size:
        return Answer(Status.UNTRUSTED, "forged channel: the answer holds no arrays", printed=printed)
    held, offset, strayed = {}, 0, False
    overrun: list[Finding] = []
    for argument, old in zip(arrays(call), before, strict=True):
        new = np.frombuffer(frame.payload, np.uint8, old.size, offset)
        offset += old.size
        held[argument.name] = layout.array(
            argument, new[layout.GUARD : layout.GUARD + layout.data_bytes(argument)]
        )
        overrun += layout.overrun(argument, old, new)
        strayed |= layout.strayed(old, new)
    return Answer(Status.RETURNED, arrays=held, overrun=tuple(overrun), strayed=strayed, printed=printed)
