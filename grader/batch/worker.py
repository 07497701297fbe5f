"""A worker that builds and grades one submission after the other: ``python -m grader.batch.worker LIFELINE``.

It imports PyTorch, examines the machine and computes the oracles only once. Students' code never runs in it,
because each session has its own runner and simulator. Each line on stdin is a request and each line on stdout
its answer, both as JSON objects. ``LIFELINE`` is the descriptor of a pipe; when it closes, the worker ends,
even during a grading. ``--kept FOLDER`` is where the workers of a batch leave results for each other;
``--processors N`` says how many processors a grading may count on, without it one.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import torch

from grader.assignments.assignment import load
from grader.batch.apart import BUILT
from grader.processes.imports import freeze
from grader.processes.threads import take_short_turns
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions
from grader.sandbox.process import ProcessSandbox
from grader.submissions.trees import SubmissionError

if TYPE_CHECKING:
    from collections.abc import Callable

TELL_SECONDS = 0.5
THREADS = 4  # that compare outputs: more of them would keep the one waiting that drives the GPU
UNWALLED = (
    "Neither docker nor bubblewrap works here, and without them a submission can read your files and the "
    "submissions of others. grader doctor says what is missing. For a class that you trust, use --sandbox "
    "process."
)


def main() -> None:
    """Answer requests until stdin or the lifeline ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("lifeline", type=int)
    parser.add_argument("--kept", type=Path)
    parser.add_argument("--processors", type=int, default=1)
    options = parser.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # printed text must not be taken for an answer
    signal.signal(signal.SIGTERM, _interrupted)
    threading.Thread(target=_watch, args=(options.lifeline,), daemon=True).start()
    freeze()  # modules stay: at the end, it would take half a second to look for garbage among PyTorch's
    torch.set_num_threads(1)  # there is a worker for each processor
    take_short_turns()
    bench = Bench(
        remembers=True,
        problems_at_once=options.processors,
        measured_at_once=1,
        threads=THREADS,
        kept=options.kept,
    )
    try:
        for line in sys.stdin:
            print(json.dumps(answer(json.loads(line), bench, telling(answers))), file=answers, flush=True)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


def telling(answers: TextIO) -> Callable[[str], None]:
    """A function that tells the batch what a grading does, but not each of its many cases."""
    lock, told = threading.Lock(), -math.inf

    def tell(doing: str) -> None:
        nonlocal told
        with lock:
            if time.monotonic() - told >= TELL_SECONDS:
                told = time.monotonic()
                print(json.dumps({"doing": doing}), file=answers, flush=True)

    return tell


def answer(
    query: dict[str, Any], bench: Bench, tell: Callable[[str], None] = lambda _doing: None
) -> dict[str, Any]:
    """Answer one request; its operation is ``look``, ``build`` or ``grade``, which it ``tell``s of.

    It may have ``problems``, ``files``, ``turn`` and ``fast``, as in ``GradingRequest``. With
    ``keeps_interrupted``, what an interrupted grading has decided is an answer, too.
    """
    if query["operation"] == "look":
        return _look(query, bench)
    assignment = load(query["assignment"])
    request = grading.GradingRequest(
        path=Path(query["path"]),
        assignment=assignment,
        problems=tuple(query.get("problems", ())) or tuple(entry.id for entry in assignment.rules.problems),
        options=GradingOptions(**query["options"]),
        seed=query["seed"],
        fast=query.get("fast", False),
        files=tuple(query.get("files", ())),
        turn=query.get("turn", 0),
    )
    if query["operation"] == "build":
        return _build(request, bench)
    keeps = query.get("keeps_interrupted", False)
    return _grade(request, bench, query["built"], tell, keeps_interrupted=keeps)


def _look(query: dict[str, Any], bench: Bench) -> dict[str, Any]:
    """The current device, or the ``error`` why there is none, and the files that are graded."""
    assignment, options = load(query["assignment"]), GradingOptions(**query["options"])
    files = grading.graded_files(assignment)
    try:
        machine = bench.machine(options.device, options.sandbox, assignment.rules.limits, again=True)
    except MachineError as error:
        return {"files": files, "error": str(error)}
    if options.sandbox == "auto" and machine.sandbox.name == ProcessSandbox.name:
        return {"files": files, "error": UNWALLED}
    info = machine.device_info
    return {"files": files, "kind": info.kind, "name": info.name, "compiler": info.compiler}


def _build(request: grading.GradingRequest, bench: Bench) -> dict[str, Any]:
    """Build ahead; if that fails, grading fails for the same reason and reports it."""
    try:
        bench.machine(request.options.device, request.options.sandbox, request.assignment.rules.limits)
        built = grading.build_ahead(request, bench)
    except (SubmissionError, MachineError, OSError):
        built = None
    return {"built": None if built is None else BUILT.dump_python(built, mode="json")}


def _grade(
    request: grading.GradingRequest,
    bench: Bench,
    built: object,
    tell: Callable[[str], None],
    *,
    keeps_interrupted: bool,
) -> dict[str, Any]:
    """Grade and return the ``record``."""
    ahead = None if built is None else BUILT.validate_python(built)
    record = grading.grade(request, tell, bench, ahead)
    if record.exit_code == ExitCode.INTERRUPTED and not keeps_interrupted:
        raise KeyboardInterrupt
    return {"record": record.model_dump(mode="json", by_alias=True)}


def _interrupted(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a second signal must not interrupt the clean-up
    raise KeyboardInterrupt


def _watch(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
