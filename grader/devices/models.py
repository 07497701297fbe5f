"""Calls a function of a PyTorch file, and checks that it launched the kernels that it has to launch."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.devices import calls, layout
from grader.devices.device import Answer, Call, ScalarArgument, Status
from grader.devices.runner import RunnerError, encodable

if TYPE_CHECKING:
    from grader.devices.runner import Runner


def packages() -> tuple[Path, ...]:
    """The folders of PyTorch and NumPy; a runner may also read their dependencies, which are beside them."""
    specs = (importlib.util.find_spec(name) for name in ("torch", "numpy"))
    return tuple(Path(spec.origin).parent for spec in specs if spec is not None and spec.origin)


def key(call: Call) -> str:
    """A text that is equal for calls of one entry point with equal sizes, which launch the same kernels."""
    sizes = (argument.value for argument in call.arguments if isinstance(argument, ScalarArgument))
    return f"{call.entry_point}({', '.join(map(str, sizes))})"


def run(runner: Runner, call: Call) -> Answer:
    """Send arrays and scalars, run the function and read its outputs; never raises for what the file does."""
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
    }
    size = sum(map(layout.data_bytes, outputs))
    try:
        frame = runner.ask(request, [layout.content(array).data for array in inputs], size, call.seconds)
    except RunnerError as error:
        return error.answer
    header = frame.header
    if header["status"] == "cuda error":
        return Answer(Status.CUDA_ERROR, header["message"], printed=header["printed"])
    if header["status"] == "raised":
        return Answer(Status.RAISED, header["message"], printed=header["printed"])
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
        faults=(*_texts(header.get("seen")), *_missing(call, header.get("calls"))),
    )


def checked(answer: Answer, least: int, seen: int) -> Answer:
    """The answer, with a fault if the device saw fewer than the ``least`` launches of the required calls."""
    if seen >= least or answer.faults:
        return answer
    fault = f"the device saw {seen} kernel launches, but the calls that the model has to make launch {least}"
    return replace(answer, faults=(fault,))


def _texts(texts: object) -> tuple[str, ...]:
    return tuple(encodable(str(text)[:500]) for text in texts[:20]) if isinstance(texts, list) else ()


def _missing(call: Call, counted: object) -> tuple[str, ...]:
    """A text for each launcher that was called less often than needed, by the runner's count."""
    counts = counted if isinstance(counted, dict) else {}
    required: dict[str, int] = {}
    for needed, times in call.needs:
        required[needed.entry_point] = required.get(needed.entry_point, 0) + times
    return tuple(
        f"{name} was called {counts.get(name, 0)} times, but {times} are needed: does PyTorch do the work?"
        for name, times in required.items()
        if not isinstance(counts.get(name, 0), int) or counts.get(name, 0) < times
    )
