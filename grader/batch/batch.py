"""Grades every submission of a folder and keeps what is finished.

A record is current if the same grader would judge the same files under the same assignment again, and if it
answers what is asked for now; then its submission is not graded again. Lost points are a result like any
other; a fault of the machine is none.
"""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from grader import __version__, leftovers
from grader.batch.children import GRADE, Children
from grader.batch.discovery import Entry, discover
from grader.build.toolchain import ToolchainError
from grader.build.toolchain import find as find_toolchain
from grader.devices.gpu import probe
from grader.exit_codes import ExitCode
from grader.grading import without_cases
from grader.problems import load_all
from grader.reports.escaping import plain
from grader.reports.folder import GRADEBOOK, RECORD, write_pages
from grader.reports.gradebook import gradebook
from grader.results import GraderInfo, Record, RecordError, SubmissionInfo, read, write, write_text
from grader.scoring import total
from grader.submission import SubmissionError, UsageError, collect
from grader.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.assignments.assignment import Assignment

SAID_LINES = 20  # of a process that ended without a record; a traceback's end


class FolderError(Exception):
    """There is nothing to grade, or no place for the results; the message says what to name instead."""


class StorageError(Exception):
    """Results cannot be written; what was finished before is kept."""


@dataclass(frozen=True)
class Request:
    """What to grade and how, as the command line says it.

    Attributes:
        folder: holds the submissions.
        out: receives a folder for each submission, the gradebook and the page.
        jobs: gradings at a time; None for one on a GPU, which they would share, else half the processors.
        force: whether to grade finished submissions too.
        command: what grades one submission, followed by its path and the options of ``grader grade``.
    """

    folder: Path
    out: Path
    assignment: Assignment
    device: str = "auto"
    sandbox: str = "auto"
    memory: str = "auto"
    seed: int | None = None
    jobs: int | None = None
    force: bool = False
    command: Sequence[str] = GRADE


@dataclass(frozen=True)
class Outcome:
    """How a batch ended.

    Attributes:
        graded: submissions with a result, from this run or kept from an earlier one.
        kept: how many of them were kept.
        faults: why the machine could not grade a submission, by its name.
        missing: submissions that an interrupt left without a result.
        interrupted: whether one did.
        ignored: files in the folder that are no submission.
    """

    graded: int
    kept: int
    faults: Mapping[str, str]
    missing: int
    interrupted: bool
    ignored: tuple[str, ...]

    @property
    def exit_code(self) -> ExitCode:
        """Lost points are no failure of a batch; an ungraded submission is."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.MACHINE_FAULT if self.faults else ExitCode.OK


def run(request: Request, progress: Callable[[str], None] = lambda _line: None) -> Outcome:
    """Grade what is not graded yet; ``progress`` gets a line for each submission that is finished.

    Raises:
        FolderError: no such folder, nothing in it, or results would become submissions.
        StorageError: the disk is full or the folder of the results read-only.
    """
    folder, out = request.folder.resolve(), request.out.resolve()
    if not folder.is_dir():
        what = "no folder: unpack it first" if folder.exists() else "not there"
        raise FolderError(f"{request.folder} is {what}. Name a folder that holds the submissions.")
    if out.is_relative_to(folder):
        raise FolderError(
            f"--out {request.out} lies in {request.folder}, where results would become submissions. "
            "Name a folder outside it."
        )
    wanted = _wanted(request.assignment)
    try:
        found = discover(folder, wanted)
    except OSError as error:
        raise FolderError(f"{request.folder} cannot be read: {error.strerror}.") from error
    if not found.entries:
        raise FolderError(_nothing(request.folder, found.ignored, wanted))
    device = _device(request.device)
    results: dict[str, Record | None] = dict(_earlier(out))
    stale = [
        entry
        for entry in found.entries
        if not _current(results.get(entry.name), entry, request, device, wanted)
    ]
    results |= {entry.name: None for entry in stale}
    todo = found.entries if request.force else stale
    kept = len(found.entries) - len(todo)
    lines = itertools.count(kept + 1)

    def store(entry: Entry, record: Record) -> None:
        results[entry.name] = record
        with _storing(out / entry.name):
            (out / entry.name).mkdir(exist_ok=True)
            write(record, out / entry.name / RECORD)
            write_text(gradebook(results), out / GRADEBOOK)
        progress(
            f"[{next(lines)}/{len(found.entries)}] {entry.name}  {_summary(record)}  {record.seconds:.1f} s"
        )

    with _storing(out):
        out.mkdir(parents=True, exist_ok=True)
    interrupted = _grade_all(todo, request, device, store)
    with _storing(out):
        write_pages(out, results, request.assignment.title)
    mine = {entry.name: results[entry.name] for entry in found.entries}
    faults = {name: fault(record) for name, record in mine.items() if record and not finished(record)}
    missing = sum(record is None for record in mine.values())
    return Outcome(len(mine) - len(faults) - missing, kept, faults, missing, interrupted, found.ignored)


def closing_lines(outcome: Outcome) -> list[str]:
    """What a person reads at the end; the last line is for scripts too."""
    lines = [f"{name}: machine fault: {plain(message)}" for name, message in outcome.faults.items()]
    if outcome.kept:
        lines.append(f"kept {outcome.kept} that were graded before (--force grades them again)")
    last = f"graded {outcome.graded}, machine faults {len(outcome.faults)}"
    if outcome.interrupted:
        last += f", interrupted before {outcome.missing}: run the same command again to go on"
    elif outcome.faults:
        last += ": run the same command again to retry them"
    return [*lines, last]


def finished(record: Record) -> bool:
    """Whether the submission was judged; a machine that failed, or an interrupt, says nothing of it."""
    return record.exit_code in {ExitCode.OK, ExitCode.POINTS_LOST}


def fault(record: Record) -> str:
    """Why the machine could not judge it, in one line."""
    messages = (problem.message for problem in record.problems if problem.verdict is Verdict.INFRA_ERROR)
    return (record.error or next(filter(None, messages), "no reason was recorded")).partition("\n")[0]


def _wanted(assignment: Assignment) -> tuple[str, ...]:
    known = load_all()
    graded = (problem.id for problem in assignment.problems if problem.graded and problem.id in known)
    return tuple(sorted({file for problem_id in graded for file in known[problem_id].files}))


def _nothing(folder: Path, ignored: tuple[str, ...], wanted: tuple[str, ...]) -> str:
    if set(ignored) & set(wanted):
        return f"{folder} is one submission, not a folder of them. Grade it with: grader grade {folder}"
    return (
        f"{folder} holds no submission. One is a sub-folder, a .zip file, or files named as Canvas "
        f"names them (doejane_1001_556677_{wanted[0] if wanted else 'kernel.cu'})."
    )


def _device(asked: str) -> str:
    """The kind of device for the whole batch, so that its records compare with each other."""
    if asked != "auto":
        return asked
    try:
        runtime = find_toolchain().runtime
    except ToolchainError:
        return "sim"
    return "gpu" if probe(runtime).usable else "sim"


def _earlier(out: Path) -> Iterator[tuple[str, Record]]:
    """The records of earlier runs; what is no record of this version is graded again."""
    for path in sorted(out.glob(f"*/{RECORD}")):
        if not path.parent.name.isprintable():
            continue  # no batch made it
        try:
            yield path.parent.name, read(path)
        except RecordError:
            continue


def _current(
    record: Record | None, entry: Entry, request: Request, device: str, wanted: tuple[str, ...]
) -> bool:
    if record is None or not finished(record):
        return False
    same_grader = (
        record.grader == GraderInfo(version=__version__, config_sha256=request.assignment.sha256)
        and record.assignment == request.assignment.id
        and [problem.id for problem in record.problems]
        == [problem.id for problem in request.assignment.problems]
    )
    as_asked = (
        (record.device is None or record.device.kind == device)
        and (record.sandbox is None or request.sandbox in {"auto", record.sandbox.backend})
        and request.seed in {None, record.seed}
        and all(
            request.memory in {"auto", problem.memory}
            for problem in record.problems
            if problem.correctness.cases
        )
    )
    content = (record.submission.sha256, record.submission.error)
    return same_grader and as_asked and _content(entry, wanted) == content


def _content(entry: Entry, wanted: tuple[str, ...]) -> tuple[str, str | None] | None:
    """What a record says of the files: their hash, or why they cannot be graded; None if nobody can tell."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as scratch,
            collect(entry.lay_out(Path(scratch)), wanted) as submission,
        ):
            return submission.sha256, None
    except SubmissionError as error:
        return "", str(error)
    except (OSError, UsageError):
        return None  # grading it tells why


def _grade_all(
    entries: Sequence[Entry], request: Request, device: str, store: Callable[[Entry, Record], None]
) -> bool:
    """Grade each entry and ``store`` its record as it comes; return whether an interrupt ended it early."""
    jobs = request.jobs or (1 if device == "gpu" else max(1, (os.cpu_count() or 1) // 2))
    children = Children()
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_grade, entry, request, device, children): entry for entry in entries}
        waiting = dict(futures)
        try:
            for future in as_completed(futures):
                store(futures[future], future.result())
                del waiting[future]
        except KeyboardInterrupt:
            pass
        else:
            return False
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            children.stop()
    for future, entry in waiting.items():  # what was finished just before the interrupt
        if not future.cancelled() and not future.exception() and finished(future.result()):
            store(entry, future.result())
    return True


def _grade(entry: Entry, request: Request, device: str, children: Children) -> Record:
    """Grade one entry in a process of its own; whatever becomes of it, a record comes back."""
    begun = datetime.now(UTC)
    try:
        with tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as scratch:
            written, said = Path(scratch, RECORD), Path(scratch, "said")
            command = [*request.command, str(entry.lay_out(Path(scratch))), "--json", str(written), "--quiet"]
            command += ["--assignment", request.assignment.id, "--device", device]
            command += ["--sandbox", request.sandbox, "--memory", request.memory]
            command += [] if request.seed is None else ["--seed", str(request.seed)]
            code = children.run(command, said)
            if written.exists():
                return _filed(read(written), entry)
            error = f"{_ended(code)} before it wrote a record; what it said is in {entry.name}/{RECORD}"
            last = said.read_text(encoding="utf-8", errors="replace").splitlines()[-SAID_LINES:]
            return _faulty("\n".join([error, *last]), entry, request, begun)
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        return _faulty(f"the machine failed: {error.strerror}{place}", entry, request, begun)
    except RecordError as error:
        return _faulty(str(error), entry, request, begun)


def _ended(code: int) -> str:
    if code >= 0:
        return f"the grading process ended with exit code {code}"
    hint = ", as the kernel does when memory runs out," if -code == signal.SIGKILL else ""
    return f"the grading process was killed{hint} by {signal.Signals(-code).name}"


def _filed(record: Record, entry: Entry) -> Record:
    """The record under the name that the batch knows, with what it understood of the submission's files."""
    submission = record.submission.model_copy(
        update={"name": entry.name, "notes": [*entry.notes, *record.submission.notes]}
    )
    return record.model_copy(update={"submission": submission})


def _faulty(error: str, entry: Entry, request: Request, begun: datetime) -> Record:
    """The record of a grading that left none."""
    assignment = request.assignment
    problems = [
        without_cases(assignment, problem.id, Verdict.INFRA_ERROR, error.partition("\n")[0])
        for problem in assignment.problems
    ]
    return Record(
        grader=GraderInfo(version=__version__, config_sha256=assignment.sha256),
        assignment=assignment.id,
        submission=SubmissionInfo(name=entry.name, sha256="", files=[], notes=list(entry.notes)),
        seed=request.seed or 0,
        started=begun.isoformat(timespec="seconds"),
        seconds=round((datetime.now(UTC) - begun).total_seconds(), 3),
        score=total(problem.points for problem in problems),
        problems=problems,
        error=error,
        exit_code=ExitCode.MACHINE_FAULT,
    )


def _summary(record: Record) -> str:
    if not finished(record):
        return f"machine fault: {plain(fault(record))}"
    return f"{record.score.earned:.1f}/{record.score.decided:.1f}"


@contextmanager
def _storing(place: Path) -> Iterator[None]:
    """What cannot be written ends the batch: nothing after it could be kept either."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"{place}: cannot be written: {error.strerror}. Results before this are kept: mend it, "
            "then run the same command again."
        ) from error
    except RecordError as error:
        raise StorageError(
            f"{error} Results before this are kept: then run the same command again."
        ) from error
