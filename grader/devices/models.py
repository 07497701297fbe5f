"""Calls a function of a PyTorch file in a runner, and makes the launches that it asks for.

On the simulator, and where the judge marks what launchers write, the runner of a model has no kernels. It
sends what its file hands to a launcher, ``Served`` makes the call on a session of its own, and the runner
gets what the launcher wrote. On a GPU the runner launches by itself in the other cases, and its own count is
believed.
"""

from __future__ import annotations

import importlib.util
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.devices import calls, layout
from grader.devices.device import Answer, ArrayArgument, Call, ScalarArgument, Status, StreamArgument
from grader.devices.runner import RunnerError, encodable
from grader.runner.protocol import MalformedError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractContextManager

    from grader.devices.device import Argument, Session
    from grader.devices.runner import Runner
    from grader.runner.protocol import Bytes, Frame, Header


def packages() -> tuple[Path, ...]:
    """The folders of PyTorch and NumPy; a runner may also read their dependencies, which are beside them."""
    specs = (importlib.util.find_spec(name) for name in ("torch", "numpy"))
    return tuple(Path(spec.origin).parent for spec in specs if spec is not None and spec.origin)


def run(
    runner: Runner,
    call: Call,
    *,
    served: bool,
    using: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Answer:
    """Send arrays and scalars, run the function and read its outputs; never raises for what the file does.

    Args:
        runner: of the model.
        call: of a function of its harness.
        served: whether the judge makes its launches.
        using: makes a context in which the runner may use the device.
    """
    arrays = calls.arrays(call)
    inputs = [array for array in arrays if array.data is not None]
    outputs = [array for array in arrays if array.data is None]
    request: dict[str, Any] = {
        "operation": "model",
        "function": call.entry_point,
        "arrays": [(array.name, array.dtype, array.shape) for array in inputs],
        "outputs": [(array.name, array.dtype, array.shape) for array in outputs],
        "scalars": {
            argument.name: argument.value
            for argument in call.arguments
            if isinstance(argument, ScalarArgument)
        },
        "served": served,
    }
    size = sum(map(layout.data_bytes, outputs))
    payload = [layout.content(array).data for array in inputs]
    try:
        frame = runner.ask(request, payload, size, call.seconds, using)
    except RunnerError as error:
        return error.answer
    header = frame.header
    if header["status"] in {"cuda error", "raised", "unbegun"}:
        return calls.failed(header)
    if len(frame.payload) != size or header["status"] != "returned":
        return Answer(
            Status.UNTRUSTED, "forged channel: the answer holds no arrays", printed=header["printed"]
        )
    held: dict[str, np.typing.NDArray[np.generic]] = {
        array.name: array.data for array in inputs if array.data is not None
    }
    offset = 0
    for array in outputs:
        data = np.frombuffer(frame.payload, np.uint8, layout.data_bytes(array), offset)
        offset += data.size
        held[array.name] = layout.array(array, data)
    return Answer(
        Status.RETURNED,
        arrays=held,
        printed=header["printed"],
        faults=(*_texts(header.get("seen")), *(() if served else missing(call, header.get("calls")))),
    )


def _texts(texts: object) -> tuple[str, ...]:
    return tuple(encodable(str(text)[:500]) for text in texts[:20]) if isinstance(texts, list) else ()


def missing(call: Call, counted: object) -> tuple[str, ...]:
    """A text for each launcher that was called less often than needed, by a count that may be forged."""
    counts = counted if isinstance(counted, dict) else {}
    required: dict[str, int] = {}
    for needed, times in call.needs:
        required[needed.entry_point] = required.get(needed.entry_point, 0) + times
    return tuple(
        too_rarely(name, counts.get(name, 0), times)
        for name, times in required.items()
        if not isinstance(counts.get(name, 0), int) or counts.get(name, 0) < times
    )


def too_rarely(launcher: str, times: object, needed: int) -> str:
    """What is said of a launcher that a model does not call often enough."""
    return f"{launcher} was called {times} times, but {needed} are needed: does PyTorch do the work?"


class Served:
    """The launches of a model, made on a session that its file has no part in.

    Args:
        kernels: runs calls of the launchers.
        entry_points: the launchers.
    """

    def __init__(self, kernels: Session, entry_points: Collection[str]) -> None:
        self._kernels = kernels
        self._entry_points = frozenset(entry_points)
        self._call: Call | None = None
        self._calls: Counter[str] = Counter()
        self._answers: list[Answer] = []

    def begin(self, call: Call) -> None:
        """Make the following launches for ``call``."""
        self._call = call
        self._calls.clear()
        self._answers.clear()

    def end(self, answer: Answer) -> Answer:
        """The answer to the call, with what its launches showed."""
        call, self._call = self._call, None
        assert call is not None
        faults = answer.faults
        if answer.usable and call.launches is None:
            faults = (*faults, *missing(call, dict(self._calls)))
        return replace(
            answer,
            faults=faults,
            served=answer.usable,
            findings=tuple(finding for each in self._answers for finding in each.findings),
            counts=tuple(count for each in self._answers for count in each.counts),
            printed="".join(each.printed for each in self._answers) + answer.printed,
        )

    def __call__(self, frame: Frame) -> tuple[Header, list[Bytes]]:
        """The answer to a runner that asks for a launch: the arrays that the launcher may write, in order.

        Raises:
            RunnerError: the launch ends the session.
            MalformedError: it is no question for a launch.
        """
        if self._call is None:
            raise MalformedError("a launch that no call asks for")
        entry_point, arguments, changed = _question(frame, self._entry_points)
        self._calls[entry_point] += 1
        launches = self._call.launches
        if launches is not None and self._calls.total() > launches.most:
            raise RunnerError(Status.LIMIT, f"more than {launches.most:,} launches in one call")
        answer = self._kernels.run(
            Call(entry_point, arguments, self._call.seconds, self._call.memory, self._call.schedule)
        )
        self._answers.append(answer)
        if not answer.goes_on and answer.status is not Status.CUDA_ERROR:
            raise RunnerError(answer.status, answer.message, answer.printed)
        if not answer.usable:
            return {"failed": answer.message}, []
        arrays = answer.arrays
        if launches is not None:
            arrays = launches.take(entry_point, arguments, arrays)
        ordered = [
            argument
            for argument in arguments
            if isinstance(argument, ArrayArgument) and argument.name in changed
        ]
        return {"failed": ""}, [
            layout.content(replace(argument, data=arrays[argument.name])).data for argument in ordered
        ]


def _question(
    frame: Frame, entry_points: Collection[str]
) -> tuple[str, tuple[Argument, ...], frozenset[str]]:
    """The launcher that a runner asks for, its arguments, and which arrays it may write.

    Raises:
        MalformedError: the frame does not say so.
    """
    header, content = frame.header, memoryview(frame.payload)
    arguments: list[Argument] = []
    changed: set[str] = set()
    try:
        for described in header["arguments"]:
            arguments.append(argument := _argument(described, content))
            if isinstance(argument, ArrayArgument) and not argument.null:
                content = content[layout.data_bytes(argument) :]
                changed |= {argument.name} if described[4] else set()
        entry_point = str(header["entry_point"])
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise MalformedError("not a question for a launch") from error
    if (
        content
        or entry_point not in entry_points
        or len({argument.name for argument in arguments}) < len(arguments)
    ):
        raise MalformedError("not a question for a launch")
    return entry_point, tuple(arguments), frozenset(changed)


def _argument(described: Sequence[Any], content: memoryview) -> Argument:
    """An argument as the runner describes it; the bytes of an array are the first ones of ``content``.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    match described:
        case ["array", str(name), str(dtype), [*shape], bool()]:
            if not all(type(length) is int and length >= 0 for length in shape):
                raise ValueError("no shape")
            empty = ArrayArgument(name, dtype, tuple(shape), None)
            data = np.frombuffer(content[: layout.data_bytes(empty)], np.uint8)
            return replace(empty, data=layout.array(empty, data))
        case ["null", str(name)]:
            return ArrayArgument(name, "float32", (), None, null=True)
        case ["scalar", str(name), "int" | "bool" | "float" as ctype, bool() | int() | float() as value]:
            return ScalarArgument(name, ctype, value)
        case ["stream", str(name)]:
            return StreamArgument(name, 0)
    raise ValueError("an unknown argument")
