"""Runs a call on memory that the runner holds: its own memory, or a GPU's."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.devices import layout
from grader.devices.device import (
    Answer,
    ArrayArgument,
    Call,
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

    from grader.devices.runner import Runner
    from grader.problems.problem import Scalar
    from grader.records.findings import Finding


def arrays(call: Call) -> list[ArrayArgument]:
    """The arrays of the call in order, without those that are passed as null."""
    pointers = (argument for argument in call.arguments if isinstance(argument, ArrayArgument))
    return [argument for argument in pointers if not argument.null]


def request(call: Call, pointers: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The request to the runner; arrays are at the addresses ``pointers``, or where the runner puts them."""
    streams = [argument.index + 1 for argument in call.arguments if isinstance(argument, StreamArgument)]
    return {
        "operation": "call",
        "entry_point": call.entry_point,
        "arguments": _arguments(call, pointers, {}),
        "streams": max(streams, default=0),
        "memory": "host" if call.memory is Memory.HOST else "device",
        "images": [layout.image_bytes(argument) for argument in arrays(call)] if pointers is None else [],
        "guard": layout.GUARD,
        "staged": _staged(call, pointers),
        "queued": _arguments(call, pointers, call.queued) if call.staged and call.queued else [],
    }


def _arguments(
    call: Call, pointers: Mapping[str, int] | None, changed: Mapping[str, Scalar]
) -> list[tuple[str, Scalar | None]]:
    """Kind and value of each argument, with the scalars in ``changed`` replaced."""
    indices = {argument.name: index for index, argument in enumerate(arrays(call))}
    encoded: list[tuple[str, Scalar | None]] = []
    for argument in call.arguments:
        match argument:
            case ArrayArgument(null=True):
                encoded.append(("pointer", None))
            case ArrayArgument():
                in_runner = ("array", indices[argument.name])
                encoded.append(in_runner if pointers is None else ("pointer", pointers[argument.name]))
            case ScalarArgument():
                encoded.append((argument.ctype, changed.get(argument.name, argument.value)))
            case StreamArgument():
                encoded.append(("stream", argument.index))
    return encoded


def of_python(call: Call, pointers: Mapping[str, int] | None = None) -> dict[str, Any]:
    """The request for a function in Python, which takes tensors, at ``pointers`` as above, and numbers.

    It gets no stream: the first one is the current stream of the call.
    """
    of_launcher = request(call, pointers)
    indices = {argument.name: index for index, argument in enumerate(arrays(call))}

    def encoded(changed: Mapping[str, Scalar]) -> list[tuple[str, Any]]:
        passed: list[tuple[str, Any]] = []
        for argument in call.arguments:
            match argument:
                case ArrayArgument(null=True):
                    passed.append(("value", None))
                case ArrayArgument():
                    kind, positions = ("array", indices) if pointers is None else ("tensor", pointers)
                    passed.append((kind, (positions[argument.name], argument.dtype, argument.shape)))
                case ScalarArgument():
                    passed.append(("value", changed.get(argument.name, argument.value)))
        return passed

    return {
        **of_launcher,
        "arguments": encoded({}),
        "streams": max(1, of_launcher["streams"]),
        "queued": encoded(call.queued) if of_launcher["queued"] else [],
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
