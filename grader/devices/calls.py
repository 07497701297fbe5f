"""A call on memory that the runner holds: its own memory, or a GPU's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from grader.devices import layout
from grader.devices.device import Answer, ArrayArgument, Call, Memory, ScalarArgument, Status, StreamArgument
from grader.devices.runner import RunnerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.devices.runner import Runner


def arrays(call: Call) -> list[ArrayArgument]:
    """The arrays that exist, in order; an array that is passed as null does not."""
    given = (argument for argument in call.arguments if isinstance(argument, ArrayArgument))
    return [argument for argument in given if not argument.null]


def request(call: Call, pointers: Mapping[str, int] | None = None) -> dict[str, Any]:
    """What the runner is asked; arrays lie at ``pointers``, or where the runner places them."""
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
    call: Call, pointers: Mapping[str, int] | None, changed: Mapping[str, int]
) -> list[tuple[str, int | bool | float | None]]:
    """Kind and value of each argument, some scalars ``changed``."""
    placed = {argument.name: index for index, argument in enumerate(arrays(call))}
    made: list[tuple[str, int | bool | float | None]] = []
    for argument in call.arguments:
        match argument:
            case ArrayArgument(null=True):
                made.append(("pointer", None))
            case ArrayArgument():
                in_runner = ("array", placed[argument.name])
                made.append(in_runner if pointers is None else ("pointer", pointers[argument.name]))
            case ScalarArgument():
                made.append((argument.ctype, changed.get(argument.name, argument.value)))
            case StreamArgument():
                made.append(("stream", argument.index))
    return made


def _staged(call: Call, pointers: Mapping[str, int] | None) -> list[tuple[int, int, bool]]:
    """Place or address, size, and whether it is read, of each array that travels through the streams."""
    if not call.staged or call.memory is Memory.HOST:
        return []
    return [
        (
            place if pointers is None else pointers[argument.name],
            layout.data_bytes(argument),
            argument.data is not None,
        )
        for place, argument in enumerate(arrays(call))
    ]


def run(runner: Runner, call: Call) -> Answer:
    """Send the arrays, call, and take them back; never raises for what the student's code does."""
    before = [layout.image(argument) for argument in arrays(call)]
    size = sum(image.nbytes for image in before)
    try:
        frame = runner.ask(request(call), [image.data for image in before], size, call.seconds)
    except RunnerError as error:
        return error.answer
    printed = frame.header["printed"]
    if frame.header["status"] != "returned":
        return Answer(Status.CUDA_ERROR, frame.header["message"], printed=printed)
    if len(frame.payload) != size:
        return Answer(Status.UNTRUSTED, "forged channel: the answer holds no arrays", printed=printed)
    held, overrun, offset = {}, {}, 0
    for argument, old in zip(arrays(call), before, strict=True):
        new = np.frombuffer(frame.payload, np.uint8, old.size, offset)
        offset += old.size
        held[argument.name] = layout.array(
            argument, new[layout.GUARD : layout.GUARD + layout.data_bytes(argument)]
        )
        if where := layout.overrun(argument, old, new):
            overrun[argument.name] = where
    return Answer(Status.RETURNED, arrays=held, overrun=overrun, printed=printed)
