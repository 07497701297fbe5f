"""Grades one submission on a GPU with a process for each of its problems.

In one process they would take turns with Python's interpreter: drawing inputs, comparing outputs and talking
to the runners is most of a grading, and a problem that is timed would wait for another one that is checked.
"""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from grader.batch.crew import WORKER, Crew, EndedError, Station, StoppedError
from grader.records.errors import MachineError
from grader.records.record import Record
from grader.run import grading
from grader.run.bench import Bench
from grader.run.kinds import kind_of
from grader.submissions.trees import SubmissionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.run.grading import Built, GradingRequest

BUILT = TypeAdapter(grading.Built)
FEWEST_PROCESSORS = 8  # with fewer, starting the processes takes longer than the turns
PROCESSORS_PER_PROBLEM = 2  # its two threads that check, on the simulator and on the GPU


def suits(request: GradingRequest) -> bool:
    """Whether to grade ``request`` so: it has several problems, and there may be a GPU and processors for it.

    Options of one who looks for a fault, or who compares speeds, are for one process.
    """
    alone = request.profile or request.fast or request.cases or request.options.precise
    several = sum(request.assignment.rules.problem(name).graded for name in request.problems) > 1
    if alone or not several or request.options.device == "sim":
        return False
    return len(os.sched_getaffinity(0)) >= FEWEST_PROCESSORS and shutil.which("nvidia-smi") is not None


def grade(
    request: GradingRequest, progress: Callable[[str], None], command: Sequence[str] = WORKER
) -> Record:
    """Grade one submission, as ``grading.grade`` does and with the same record.

    An interrupt ends the processes, and the record has what they had decided.
    """
    start, built = grading.Start(), None
    request = replace(request, files=grading.graded_files(request.assignment, request.problems))
    limits, processors = request.assignment.rules.limits, len(os.sched_getaffinity(0))
    count = min(len(request.problems), max(1, processors // PROCESSORS_PER_PROBLEM))
    bench = Bench(remembers=True)
    with Crew([Station(processors=processors)] * count, command) as crew:
        crew.start(count)  # they import PyTorch while all is built
        try:
            progress("looking at this machine")
            if bench.machine(request.options.device, request.options.sandbox, limits).gpu is not None:
                progress("compiling")
                built = grading.build_ahead(request, bench)
        except (SubmissionError, MachineError, OSError):
            built = None  # the grading in this process tells why
        except KeyboardInterrupt:
            return grading.put_together(request, [], start, interrupted=True)
        if built is not None:
            return _graded(request, progress, crew, built, start)
    return grading.grade(request, progress)


def _graded(
    request: GradingRequest,
    progress: Callable[[str], None],
    crew: Crew,
    built: Built,
    start: grading.Start,
) -> Record:
    """The record of the parts; a problem whose process ended is graded in this one."""
    problems = request.assignment.problems
    longest_first = sorted(
        request.problems, key=lambda name: kind_of(problems[name]).rank if name in problems else 0
    )
    each = {name: replace(request, problems=(name,)) for name in longest_first}
    records: dict[str, Record | None] = {}
    interrupted, builds = False, BUILT.dump_python(built, mode="json")
    with ThreadPoolExecutor(len(crew)) as pool:
        parts = {name: pool.submit(_part, part, progress, crew, builds) for name, part in each.items()}
        try:
            for name, part in parts.items():
                records[name] = part.result()
                if records[name] is None:
                    progress(f"{name}: its process ended, trying again")
                    records[name] = grading.grade(each[name], progress, built=built)
        except BaseException as error:
            pool.shutdown(wait=False, cancel_futures=True)
            crew.stop()
            if not isinstance(error, KeyboardInterrupt):
                raise
            interrupted = True
            records |= {
                name: part.result()
                for name, part in parts.items()
                if name not in records and not part.cancelled()
            }
    judged = [record for record in records.values() if record is not None]
    return grading.put_together(request, judged, start, interrupted=interrupted)


def _part(
    request: GradingRequest, progress: Callable[[str], None], crew: Crew, builds: Mapping[str, Any]
) -> Record | None:
    """The record of one problem; None if its process ended, or was never asked."""
    query = {
        "operation": "grade",
        "assignment": str(request.assignment.folder),
        "path": str(request.path),
        "problems": request.problems,
        "options": asdict(request.options),
        "seed": request.seed,
        "files": request.files,
        "built": builds,
        "keeps_interrupted": True,
    }
    try:
        with crew.worker() as worker:
            answer = worker.ask(query, progress)
    except (EndedError, StoppedError):
        return None
    return Record.model_validate(answer["record"])
