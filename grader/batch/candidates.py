"""Judges many candidates for one problem, as the training or the evaluation of a model makes them.

The processes are those of a batch. They stay for all candidates, and keep inputs, oracles and baselines.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.assignments.assignment import Assignment, load
from grader.batch.batch import workers_per_gpu
from grader.batch.crew import WORKER, Crew, EndedError, Station
from grader.processes import leftovers
from grader.records.errors import MachineError
from grader.records.record import SEED_BITS, Record
from grader.records.verdict import Verdict
from grader.reports.fix_first import fix_first
from grader.run.grading import graded_files
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self


class CandidateError(Exception):
    """A file that cannot be an answer to the problem; the message says what can."""


@dataclass(frozen=True)
class Judgement:
    """What became of a candidate.

    Attributes:
        candidate: its path.
        verdict: PASS, FAIL, AMBIGUOUS, UNTRUSTED, NOT_MEASURED or INFRA_ERROR.
        cause: what is wrong, in one line; "" where nothing is.
        remedy: what to do about it, where that is known.
        file: where it is, if a line is known: a file is judged under the name that the problem asks for.
        line: likewise, else 0.
        speedup: in the measure of the assignment; None where no speed was measured.
        target: of the speedup.
        distrust: why the candidate is not trusted.
        earned: points.
        decided: points that could be judged here: without a GPU, those for speed are not among them.
        seconds: that judging took.
    """

    candidate: str
    verdict: Verdict
    cause: str = ""
    remedy: str = ""
    file: str = ""
    line: int = 0
    speedup: float | None = None
    target: float | None = None
    distrust: tuple[str, ...] = ()
    earned: float = 0.0
    decided: float = 0.0
    seconds: float = 0.0


class Judge:
    """Judges candidates for a problem; a context manager, whose processes end with it.

    Args:
        problem: its id.
        assignment: that has it: an id, a folder, or what is loaded already.
        options: how to judge.
        seed: of the inputs, which are the same for all candidates; None for a secret one.
        jobs: candidates that are judged side by side; None for what suits the machine.
        command: that starts a process.

    Raises:
        AssignmentError: there is no such problem.
        MachineError: nothing can be judged here.
    """

    def __init__(
        self,
        problem: str,
        assignment: Assignment | str,
        options: GradingOptions | None = None,
        *,
        seed: int | None = None,
        jobs: int | None = None,
        command: Sequence[str] = WORKER,
    ) -> None:
        self._assignment = load(assignment) if isinstance(assignment, str) else assignment
        self._problem = self._assignment.rules.problem(problem).id
        self._files = graded_files(self._assignment, (self._problem,))
        self._options = options or GradingOptions()
        self._seed = secrets.randbits(SEED_BITS) if seed is None else seed
        self._kept = tempfile.TemporaryDirectory(prefix=leftovers.prefix())
        processors = len(os.sched_getaffinity(0))
        self._crew = Crew([Station(kept=Path(self._kept.name))] * (jobs or processors), command)
        self._pool = ThreadPoolExecutor(len(self._crew))
        try:
            kind = self._look()
        except BaseException:
            self.close()
            raise
        if kind == "gpu" and jobs is None:
            self._crew.reduced(workers_per_gpu(processors, 1))

    def judge(self, candidate: Path | str) -> Judgement:
        """The judgement on a file, or on the folder or archive of a submission.

        Raises:
            CandidateError: the file has another language than an answer to the problem can have.
        """
        path, began = Path(candidate), time.monotonic()
        with tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as folder:
            handed_in = path.resolve()
            if not path.is_dir() and (name := self.file_of(path)):
                shutil.copyfile(path, Path(folder, name))
                handed_in = Path(folder)
            try:
                with self._crew.worker() as worker:
                    answer = worker.ask(self._query("grade", path=str(handed_in), built=None, fast=True))
            except EndedError as error:
                return Judgement(str(candidate), Verdict.INFRA_ERROR, f"{error}: {error.said}")
        record = Record.model_validate(answer["record"])
        return _judgement(str(candidate), record, time.monotonic() - began)

    def judged(self, candidates: Iterable[Path | str]) -> Iterator[Judgement]:
        """The judgements on candidates, in their order; several are judged side by side."""
        waiting: deque[Future[Judgement]] = deque()
        for candidate in candidates:
            waiting.append(self._pool.submit(self.judge, candidate))
            if len(waiting) > len(self._crew):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def file_of(self, candidate: Path) -> str:
        """The name that a file has to have for the problem; "" for an archive.

        Raises:
            CandidateError: there is none, or the problem asks for several files.
        """
        alike = [name for name in dict.fromkeys(self._files) if Path(name).suffix == candidate.suffix]
        if len(alike) == 1:
            return alike[0]
        if candidate.suffix in {".zip", ".gz", ".tgz", ".tar", ".xz", ".bz2", ".7z"}:
            return ""
        asked = " and ".join(self._files)
        raise CandidateError(
            f"{candidate}: {self._problem} asks for {asked}. Name a file of that kind, or a folder that "
            "holds what is asked for."
        )

    def close(self) -> None:
        """End the processes, also in the middle of a judgement."""
        self._crew.stop()
        self._pool.shutdown(cancel_futures=True)
        self._kept.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _look(self) -> str:
        """The kind of the device.

        Raises:
            MachineError: there is none, or no process can be started.
        """
        try:
            with self._crew.worker() as worker:
                machine = worker.ask(self._query("look"))
        except EndedError as error:
            raise MachineError(f"{error} at its start:\n{error.said}") from error
        except OSError as error:
            raise MachineError(f"A process cannot be started: {error.strerror}.") from error
        if "error" in machine:
            raise MachineError(machine["error"])
        return str(machine["kind"])

    def _query(self, operation: str, **more: object) -> dict[str, Any]:
        return {
            "operation": operation,
            "assignment": str(self._assignment.folder),
            "problems": [self._problem],
            "options": asdict(self._options),
            "seed": self._seed,
            **more,
        }


def _judgement(candidate: str, record: Record, seconds: float) -> Judgement:
    """What the record of a candidate says of its only problem."""
    (problem,) = record.problems
    fix = fix_first(problem)
    failed = record.error or record.submission.error
    return Judgement(
        candidate=candidate,
        verdict=problem.verdict,
        cause=failed or (problem.message if fix is None else fix.fault),
        remedy="" if fix is None else fix.do,
        file="" if fix is None else fix.file,
        line=0 if fix is None else fix.line,
        speedup=problem.performance.speedup,
        target=None if problem.performance.speedup is None else problem.performance.target,
        distrust=tuple(problem.trust.reasons),
        earned=problem.points.earned,
        decided=problem.points.decided,
        seconds=round(seconds, 3),
    )
