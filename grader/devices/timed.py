"""The judge's side of timed sweeps on a GPU; ``runner.timing`` executes them."""

from __future__ import annotations

import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from grader.devices import calls, layout
from grader.devices.device import Status
from grader.devices.runner import RunnerError, encodable
from grader.problems.dtypes import DTYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import TracebackType

    from numpy.typing import NDArray

    from grader.devices.device import ArrayArgument, Call
    from grader.devices.runner import Runner

    Arrays = Mapping[str, NDArray[np.generic]]

STRANGERS = "a call does other than launch kernels of the submission: {}"
MOST_WORDS = 1000  # characters
STEP_SECONDS = 120.0  # time-out of one request; a sweep takes milliseconds


class Content(NamedTuple):
    """The content of a slot: a base by number, with its turning arrays rotated forward by ``turn`` rows."""

    base: int
    turn: int


class Piece(NamedTuple):
    """A range of a written array in a slot: ``elements`` elements from element ``first`` on."""

    slot: int
    array: str
    first: int
    elements: int


class Clocks(NamedTuple):
    """The seconds of a batch.

    Attributes:
        judge: by this process's clock, with the restoring before each sweep and the round trip.
        runner: what the runner says of the sweeps together, which is not trusted; NaN if it cannot be.
    """

    judge: float
    runner: float


@dataclass(frozen=True)
class Step:
    """One kernel of the baseline: an exported function and its arguments as the runner encodes them."""

    function: str
    arguments: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Plan:
    """The description of what is timed.

    Attributes:
        call: the call of the entry point; only the shapes of its arrays matter, not their content.
        written: names of the arrays that the entry point writes.
        method: ``graph``, ``events`` or ``host``.
        slots: number of rotating buffer sets.
        turns: number of rows of each turning array, by name; see ``KernelProblem.turning``.
        libraries: the baseline's functions by library.
        steps: the baseline's kernels; arrays are numbered as in the call, then come the temporaries. Without
            any, the baseline is the streaming kernel.
        scratch: bytes of each temporary.
        reads: bytes that the streaming kernel reads per call.
        writes: bytes that it writes.
    """

    call: Call
    written: frozenset[str]
    method: str
    slots: int
    turns: Mapping[str, int]
    libraries: Mapping[Path, tuple[str, ...]]
    steps: tuple[Step, ...]
    scratch: tuple[int, ...]
    reads: int
    writes: int


class NotCapturedError(Exception):
    """The launcher cannot be captured as a CUDA graph; the message is CUDA's."""


class TimedSession:
    """One runner with a prepared case; after a RunnerError from any method it cannot be used any more."""

    def __init__(self, runner: Runner, asked: Callable[[Call], Mapping[str, Any]] = calls.request) -> None:
        """Time calls in ``runner``, which are ``asked`` for like this."""
        self._runner = runner
        self._asked = asked
        self._plan: Plan | None = None
        self._kept: list[Sequence[Piece]] = []
        self._due: list[list[tuple[int, int, int, int]]] = []  # what the runner is still to keep

    def prepare(
        self,
        plan: Plan,
        bases: Sequence[Arrays],
        using: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Allocate memory, send the bases and capture the graphs, with the GPU in the context ``using``.

        Raises:
            NotCapturedError: with the method ``graph``; the session must be closed.
            RunnerError: a function in Python does what it may not do in a timed call, or see above.
        """
        self._plan, self._kept, self._due = plan, [], []
        arguments = calls.arrays(plan.call)
        call = self._asked(plan.call)
        (launcher,) = call["calls"]
        request = {
            "step": "prepare",
            "arrays": [
                {
                    "bytes": layout.data_bytes(argument),
                    "read": _restored(argument),
                    "written": argument.name in plan.written,
                    "turns": plan.turns.get(argument.name, 1),
                }
                for argument in arguments
            ],
            "slots": plan.slots,
            "method": plan.method,
            "entry_point": launcher["entry_point"],
            "arguments": launcher["arguments"],
            "streams": call["streams"],
            "libraries": [[str(path), list(names)] for path, names in plan.libraries.items()],
            "steps": [{"function": step.function, "arguments": step.arguments} for step in plan.steps],
            "scratch": plan.scratch,
            "reads": plan.reads,
            "writes": plan.writes,
        }
        request |= {"operation": "time", "bases": len(bases)}
        header = self._runner.ask(request, self._bytes(bases), 0, STEP_SECONDS, using).header
        if header["status"] != "returned":
            if plan.method == "graph":
                raise NotCapturedError(header["message"])
            raise RunnerError(Status.CUDA_ERROR, header["message"], header["printed"])
        if strangers := header.get("strangers"):
            raise RunnerError(Status.UNTRUSTED, STRANGERS.format(encodable(str(strangers)[:MOST_WORDS])))

    def add(self, bases: Sequence[Arrays]) -> None:
        """Send bases whose numbers follow those of ``prepare``, in place of others that were added."""
        self._ask({"step": "add", "bases": len(bases)}, self._bytes(bases))

    def sweep(self, arm: str, contents: Sequence[Content], calls: int | None = None) -> float:
        """The untrusted seconds of one sweep by the runner's clock; NaN if a request cannot take as long.

        All slots are filled with their contents first. With ``calls``, the sweep ends after that many calls.
        """
        request = {"step": "sweep", "arm": arm, "contents": list(contents), "calls": calls}
        return _seconds(self._ask(request))

    def batch(self, arm: str, contents: Sequence[Sequence[Content]], calls: int | None = None) -> Clocks:
        """Seconds of several sweeps by two clocks."""
        sweeps = [list(sweep) for sweep in contents]
        if self._due:
            self._ask({"step": "keep"})
        start = time.perf_counter()
        answer = self._ask({"step": "batch", "arm": arm, "contents": sweeps, "calls": calls})
        return Clocks(time.perf_counter() - start, _seconds(answer))

    def keep(self, pieces: Sequence[Piece]) -> None:
        """Let the runner keep ``pieces`` as the last sweep left them; those of an array follow each other.

        It is told with the next request, before that does anything.
        """
        types, ranges = self._types(), []
        numbers = {name: number for number, name in enumerate(types)}
        for piece in pieces:
            size = types[piece.array].itemsize
            ranges.append((piece.slot, numbers[piece.array], piece.first * size, piece.elements * size))
        self._due.append(ranges)
        self._kept.append(pieces)

    def fetch(
        self, using: Callable[[], AbstractContextManager[object]] = nullcontext
    ) -> list[dict[str, NDArray[np.generic]]]:
        """What was kept since this was called before, in this order: the elements of each array.

        The runner has the GPU in the context ``using``.
        """
        kept, self._kept, types = self._kept, [], self._types()
        size = sum(piece.elements * types[piece.array].itemsize for pieces in kept for piece in pieces)
        frame = self._runner.ask(self._request({"step": "fetch"}), (), size, STEP_SECONDS, using)
        if len(frame.payload) != size:
            raise RunnerError(Status.UNTRUSTED, "forged channel: the answer holds no arrays")
        fetched: list[dict[str, NDArray[np.generic]]] = []
        offset = 0
        for pieces in kept:
            fetched.append({})
            for name, group in groupby(pieces, key=attrgetter("array")):
                count = sum(piece.elements for piece in group)
                fetched[-1][name] = np.frombuffer(frame.payload, types[name], count, offset)
                offset += count * types[name].itemsize
        return fetched

    def close(self) -> None:
        """End the runner."""
        self._runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _types(self) -> dict[str, np.dtype[Any]]:
        """The type of each array's elements."""
        assert self._plan is not None
        return {array.name: DTYPES[array.dtype].storage for array in calls.arrays(self._plan.call)}

    def _bytes(self, bases: Sequence[Arrays]) -> list[memoryview]:
        assert self._plan is not None
        read = [array for array in calls.arrays(self._plan.call) if _restored(array)]
        return [
            layout.content(replace(array, data=base[array.name])).data for base in bases for array in read
        ]

    def _ask(self, request: Mapping[str, Any], payload: Sequence[memoryview] = ()) -> dict[str, Any]:
        header = self._runner.ask(self._request(request), payload, 0, STEP_SECONDS).header
        if header["status"] != "returned":
            raise RunnerError(Status.CUDA_ERROR, header["message"], header["printed"])
        return header

    def _request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        due, self._due = self._due, []
        return {"operation": "time", **request, "keep": due}


def _seconds(answer: Mapping[str, Any]) -> float:
    """What the runner says that a request took; NaN if it cannot have taken as long."""
    seconds = answer.get("seconds")
    if not isinstance(seconds, int | float) or not 0 <= seconds <= STEP_SECONDS:
        return math.nan
    return float(seconds)


def _restored(argument: ArrayArgument) -> bool:
    """Whether a base has content for an array: an input, or the poison of an output of integers.

    The runner fills other outputs with bytes of 0xFF, which no floating-point type takes for a number.
    """
    return argument.data is not None or DTYPES[argument.dtype].exact
