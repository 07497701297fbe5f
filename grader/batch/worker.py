"""Builds and grades one submission after the other: ``python -m grader.batch.worker LIFELINE``.

It imports PyTorch, looks at the machine and computes the oracles once. Students' code never runs in it: each
session has a runner and a simulator of its own. A line on stdin is a request and a line on stdout its answer,
JSON objects both; ``LIFELINE`` is the number of a pipe whose end is the end of the worker, in the middle of a
grading too. ``--turn FILE`` names what is locked while the device works, as several workers share a GPU.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import torch
from pydantic import TypeAdapter

from grader.assignments.assignment import load
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.run import grading
from grader.run.bench import Bench
from grader.sandbox.process import ProcessSandbox
from grader.submissions.submission import SubmissionError

if TYPE_CHECKING:
    from types import TracebackType

UNWALLED = (
    "Neither docker nor bubblewrap works here, and without them a submission can read your files and what "
    "others handed in. grader doctor says what is missing. For a class that you trust: --sandbox process."
)
_BUILT = TypeAdapter(grading.Built)


class Turn:
    """A lock between processes; it is released when its process ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> None:
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)


def main() -> None:
    """Answer requests until stdin or the lifeline ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lifeline", type=int)
    parser.add_argument("--turn", type=Path)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever prints does not answer
    signal.signal(signal.SIGTERM, _interrupted)
    threading.Thread(target=_watch, args=(options.lifeline,), daemon=True).start()
    torch.set_num_threads(1)  # there is a worker per processor
    turn = Turn(options.turn) if options.turn else None
    bench = Bench(remembers=True, problems_at_once=1, turn=turn)
    try:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), bench)), file=answers, flush=True)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def answer(asked: dict[str, Any], bench: Bench) -> dict[str, Any]:
    """Answer one request; its operation is ``look``, ``build`` or ``grade``."""
    if asked["operation"] == "look":
        return _look(asked, bench)
    assignment = load(asked["assignment"])
    request = grading.GradingRequest(
        path=Path(asked["path"]),
        assignment=assignment,
        problems=tuple(entry.id for entry in assignment.rules.problems),
        device=asked["device"],
        sandbox=asked["sandbox"],
        memory=asked["memory"],
        seed=asked["seed"],
    )
    return _build(request, bench) if asked["operation"] == "build" else _grade(request, bench, asked["built"])


def _look(asked: dict[str, Any], bench: Bench) -> dict[str, Any]:
    """The device as it is now, or the ``error`` why there is none; and the files that problems are in."""
    assignment = load(asked["assignment"])
    files = grading.graded_files(assignment)
    try:
        with bench.turn:
            machine = bench.machine(asked["device"], asked["sandbox"], assignment.rules.limits, again=True)
    except MachineError as error:
        return {"files": files, "error": str(error)}
    if asked["sandbox"] == "auto" and machine.sandbox.name == ProcessSandbox.name:
        return {"files": files, "error": UNWALLED}
    info = machine.device_info
    return {"files": files, "kind": info.kind, "name": info.name, "compiler": info.compiler}


def _build(request: grading.GradingRequest, bench: Bench) -> dict[str, Any]:
    """Build ahead; where that fails, grading will fail for the same reason and report it."""
    try:
        with bench.turn:
            bench.machine(request.device, request.sandbox, request.assignment.rules.limits)
        built = grading.build_ahead(request, bench)
    except (SubmissionError, MachineError, OSError):
        built = None
    return {"built": None if built is None else _BUILT.dump_python(built, mode="json")}


def _grade(request: grading.GradingRequest, bench: Bench, built: object) -> dict[str, Any]:
    """The ``record``."""
    ahead = None if built is None else _BUILT.validate_python(built)
    record = grading.grade(request, bench=bench, built=ahead)
    if record.exit_code == ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    return {"record": record.model_dump(mode="json", by_alias=True)}


def _interrupted(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the way out is not interrupted
    raise KeyboardInterrupt


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
