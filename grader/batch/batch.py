"""Grades every submission in a folder and keeps finished results.

Worker processes grade; see ``worker.py``. On the sim, there is a worker for each processor, which also builds
the submissions. With GPUs, some workers build ahead on the processors, and each GPU has several workers that
grade. Only what is timed has a GPU for itself: meanwhile the others check on the sim, draw inputs and compare
outputs.
"""

from __future__ import annotations

import difflib
import os
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.batch import by_hand, regrade, teams
from grader.batch.crew import WORKER, Crew, EndedError, NoWorkerLeftError, Station, Worker
from grader.batch.handed_in import renew
from grader.batch.records import DeviceKind, Records, Wish, class_seed, fault, finished, storing
from grader.processes import leftovers
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.records.record import Record, SubmissionInfo
from grader.records.verdict import Verdict
from grader.reports.escaping import plain
from grader.reports.folder import RECORD
from grader.run.bench import alike
from grader.run.grading import grader_info
from grader.run.judging import without_cases
from grader.run.options import GradingOptions
from grader.run.scoring import total
from grader.submissions.discovery import Discovery, Entry, discover

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grader.assignments.assignment import Assignment
    from grader.batch.regrade import Regrading

MOST_WORKERS_PER_GPU = 8  # more would wait for it
PROCESSORS_PER_WORKER = 2  # for its runner and its judge
PROCESSORS_PER_BUILDER = 4  # of which there are fewer, as starting one takes as long as a build
SHOWN_NAMES = 5


class FolderError(Exception):
    """There is nothing to grade, or results cannot go there; the message says what to name instead."""


@dataclass(frozen=True)
class Shard:
    """Part ``number`` of ``count``, from 1."""

    number: int = 1
    count: int = 1

    def of(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """The entries of this part; each entry is in exactly one part."""
        return tuple(entries[self.number - 1 :: self.count])


@dataclass(frozen=True)
class BatchRequest:
    """What to grade and how, from the command line.

    Attributes:
        folder: the folder of the submissions.
        out: receives a folder for each submission, the gradebook and the page.
        assignment: the assignment of all submissions.
        options: how to grade.
        seed: seed of all gradings; None for the one kept in ``out``, which its first batch draws.
        jobs: parallel gradings on the sim, or parallel builds with GPUs; None for all processors.
        gpus: the GPUs to use if there are any: how many, or their names with a comma; None for all.
        since: finished submissions that were graded earlier than this are graded again; None keeps them.
        only: names of submissions; all if empty.
        shard: the part to grade.
        submitted: the table of when submissions were handed in; None for the one that was named before.
        regrade: a table of requests, whose submissions alone are graded, again; None for all as usual.
        command: the command that starts a worker.
    """

    folder: Path
    out: Path
    assignment: Assignment
    options: GradingOptions = field(default_factory=GradingOptions)
    seed: int | None = None
    jobs: int | None = None
    gpus: str | None = None
    since: datetime | None = None
    only: tuple[str, ...] = ()
    shard: Shard = Shard()
    submitted: Path | None = None
    regrade: Path | None = None
    command: Sequence[str] = WORKER


@dataclass(frozen=True)
class BatchProgress:
    """The progress of a batch.

    Attributes:
        line: a line to show about what happened; empty if nothing new did.
        doing: what a GPU, or else a processor, does now; empty where nothing is known.
        done: number of finished submissions of this run.
        todo: number of all submissions of this run.
    """

    line: str
    done: int
    todo: int
    doing: str = ""


@dataclass(frozen=True)
class BatchResult:
    """How a batch ended.

    Attributes:
        graded: number of submissions with a result, from this run or kept from an earlier one.
        kept: number of results that were kept from earlier runs.
        faults: reasons why the machine could not grade a submission, by its name.
        missing: number of submissions that have no result because the batch ended early.
        interrupted: whether an interrupt ended the batch.
        ignored: files in the folder that are not submissions.
        stopped: reason why the batch could not go on; empty if it could.
        skipped: reasons why files that were probably meant as submissions are not.
        damaged: why a record of an earlier batch, which this one did not make again, cannot be read, by name.
    """

    graded: int
    kept: int
    faults: Mapping[str, str]
    missing: int
    interrupted: bool
    ignored: tuple[str, ...]
    stopped: str = ""
    skipped: tuple[str, ...] = ()
    damaged: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code; lost points are OK, but a submission without a result is not."""
        if self.interrupted:
            return ExitCode.INTERRUPTED
        return ExitCode.MACHINE_FAULT if self.faults or self.stopped or self.damaged else ExitCode.OK


@dataclass
class _Run:
    """The state of a running batch."""

    request: BatchRequest
    records: Records
    seed: int
    todo: tuple[Entry, ...]
    before: Mapping[str, str]  # earlier scores of submissions that are graded again
    kept: int
    progress: Callable[[BatchProgress], None]
    done: int = 0
    broke: set[str] = field(default_factory=set)  # submissions after which a GPU stopped working
    stopped: str = ""

    def say(self, line: str, doing: str = "") -> None:
        self.progress(BatchProgress(line, self.done, len(self.todo), doing))

    def keep(self, entry: Entry, record: Record) -> None:
        """Write a record and report it as progress."""
        self.records.keep(entry, record)
        self.records.show(shared=self.request.shard.count > 1)
        self.done += 1
        was = f" (was {self.before[entry.name]})" if entry.name in self.before else ""
        number = f"[{self.kept + self.done}/{self.kept + len(self.todo)}]"
        self.say(f"{number} {entry.name}  {_summary(record)}{was}  {record.seconds:.1f} s")


def run(request: BatchRequest, progress: Callable[[BatchProgress], None] = lambda _step: None) -> BatchResult:
    """Grade what is not graded yet; ``progress`` is called for each finished submission.

    Raises:
        FolderError: there is no such folder, nothing is in it, or results would become submissions.
        MachineError: this machine cannot grade.
        StorageError: the disk is full, or the folder of the results is read-only.
        NewerError: a newer grader has written a record there.
        TableError: the table of times is wrong.
    """
    _check_folders(request)
    keep_times(request)
    with _crews(request) as (builders, graders, device, files):
        discovery = find(request.folder, files)
        chosen = choose(discovery.entries, request.only, request.shard)
        requests: list[Regrading] = []
        if request.regrade is not None:
            requests = regrade.pending(request.out, request.regrade, [entry.name for entry in chosen])
            chosen = tuple(entry for entry in chosen if entry.name in {one.submission for one in requests})
        records = Records(request.out.resolve(), request.assignment.title)
        seed = class_seed(request.out) if request.seed is None else request.seed
        wish = Wish(request.assignment, device, request.options.sandbox, request.options.memory, request.seed)
        stale = {entry.name for entry in chosen if not records.stands(entry, wish, files)}
        # All that is asked for, and with a time only what an earlier attempt at it has not graded yet.
        again = chosen if requests or request.since else ()
        old = {
            entry.name
            for entry in again
            if request.since is None or not records.made_since(entry, request.since)
        }
        todo = tuple(entry for entry in chosen if entry.name in stale | old)
        earlier = {entry.name: records[entry.name] for entry in chosen}
        before = {name: _score(record) for name, record in earlier.items() if record}
        records.expect(discovery.entries)
        for entry in todo:
            if entry.name in stale:
                records.forget(entry)
        running = _Run(request, records, seed, todo, before, len(chosen) - len(todo), progress)
        if builders is not None:
            graders.start(len(todo))  # importing PyTorch takes as long as the first builds
        interrupted = _grade_all(running, builders, graders)
    mine = {entry.name: records[entry.name] for entry in chosen}
    if requests:
        done = {
            name
            for name, record in mine.items()
            if record is not earlier[name] and record and finished(record)
        }
        with storing(request.out):
            regrade.keep(request.out, [one for one in requests if one.submission in done], earlier, mine)
    records.show_all()
    return outcome(
        mine,
        running.kept,
        discovery,
        interrupted=interrupted,
        stopped=running.stopped,
        damaged=records.damaged,
    )


def keep_times(request: BatchRequest) -> None:
    """Keep the table of times beside the records, for every later report.

    Raises:
        StorageError: there is no room for it.
        TableError: it is wrong.
    """
    with storing(request.out):
        request.out.mkdir(parents=True, exist_ok=True)
        renew(request.out, request.assignment.rules, request.submitted)
        by_hand.read(request.out)  # a table that is wrong is told before anything is graded
        teams.read(request.out)
        regrade.read(request.out)


def outcome(
    results: Mapping[str, Record | None],
    kept: int,
    discovery: Discovery,
    *,
    interrupted: bool = False,
    stopped: str = "",
    damaged: Mapping[str, str],
) -> BatchResult:
    """The result of a batch, from the records of its submissions and the ``discovery`` in the folder."""
    faults = {name: fault(record) for name, record in results.items() if record and not finished(record)}
    missing = sum(record is None for record in results.values())
    graded = len(results) - len(faults) - missing
    return BatchResult(
        graded, kept, faults, missing, interrupted, discovery.ignored, stopped, discovery.skipped, damaged
    )


def closing_lines(outcome: BatchResult) -> list[str]:
    """The last lines that a batch prints; scripts may read the last one of all."""
    lines = [f"{name}: machine fault: {plain(message)}" for name, message in outcome.faults.items()]
    if outcome.stopped:
        lines.append(plain(outcome.stopped))
    if outcome.kept:
        lines.append(f"kept {outcome.kept} that were graded before (--force grades them again)")
    last = f"graded {outcome.graded}, machine faults {len(outcome.faults)}"
    if outcome.interrupted or outcome.missing:
        word = "interrupted" if outcome.interrupted else "stopped"
        last += f", {word} before {outcome.missing}: run the same command again to go on"
    elif outcome.faults:
        last += ": run the same command again to retry them"
    return [*lines, last]


def find(folder: Path, files: tuple[str, ...]) -> Discovery:
    """The submissions in ``folder``; ``files`` are the names of the files that are graded.

    Raises:
        FolderError: there are no submissions, or the folder cannot be read.
    """
    try:
        discovery = discover(folder.resolve(), files)
    except OSError as error:
        raise FolderError(f"{folder} cannot be read: {error.strerror}.") from error
    if discovery.entries:
        return discovery
    if any((folder / name).is_file() for name in files):
        raise FolderError(
            f"{folder} is one submission, not a folder of them. Grade it with: grader grade {folder}"
        )
    raise FolderError(
        "".join(f"{reason}.\n" for reason in discovery.skipped)
        + f"{folder} holds no submission. A submission is a sub-folder, an archive, or files with names "
        f"from Canvas (doejane_1001_556677_{files[0] if files else 'kernel.cu'})."
    )


def choose(entries: Sequence[Entry], only: Sequence[str], shard: Shard) -> tuple[Entry, ...]:
    """The entries of ``shard`` whose names are in ``only``; all of the shard if ``only`` is empty.

    Raises:
        FolderError: there is no submission with one of these names.
    """
    names = [entry.name for entry in entries]
    for name in only:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are: {_listed(names)}."
            raise FolderError(f"--only {name}: there is no such submission. {hint}")
    return shard.of([entry for entry in entries if not only or entry.name in only])


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def _check_folders(request: BatchRequest) -> None:
    folder, out = request.folder.resolve(), request.out.resolve()
    if not folder.is_dir():
        what = "is not a folder: unpack it first" if folder.exists() else "does not exist"
        raise FolderError(f"{request.folder} {what}. Name a folder that holds the submissions.")
    if out.is_relative_to(folder):
        raise FolderError(
            f"--out {request.out} lies in {request.folder}, where results would become submissions. "
            "Name a folder outside it."
        )


@contextmanager
def _crews(request: BatchRequest) -> Iterator[tuple[Crew | None, Crew, DeviceKind, tuple[str, ...]]]:
    """The workers that build ahead (None without a GPU) and that grade, the device, and the graded files."""
    processors = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as kept:
        graders = Crew([Station(kept=Path(kept))] * (request.jobs or processors), request.command)
        builders: Crew | None = None
        try:
            machine = _look(request, graders)
            if machine["kind"] == "gpu":
                gpus = [Station(gpu, Path(kept)) for gpu in _gpus(request.gpus)]
                each = workers_per_gpu(processors, len(gpus))
                builders = graders.reduced(request.jobs or max(1, processors // PROCESSORS_PER_BUILDER))
                graders = Crew(gpus * each, request.command)
            device = DeviceKind(machine["kind"], machine["name"], machine["compiler"])
            yield builders, graders, device, tuple(machine["files"])
        finally:
            graders.stop()
            if builders is not None:
                builders.stop()


def workers_per_gpu(processors: int, gpus: int) -> int:
    """How many workers grade on each GPU: two at least, so that one has it while the other checks."""
    return min(MOST_WORKERS_PER_GPU, max(2, processors // (PROCESSORS_PER_WORKER * gpus)))


def _look(request: BatchRequest, crew: Crew) -> dict[str, Any]:
    try:
        with crew.worker() as worker:
            machine = worker.ask(_query("look", request, 0))
    except EndedError as error:
        raise MachineError(f"{error} at its start:\n{error.said}") from error
    except OSError as error:
        raise MachineError(f"A process cannot be started: {error.strerror}.") from error
    if "error" in machine:
        raise MachineError(machine["error"])
    return machine


def _gpus(asked: str | None) -> list[str]:
    """The names of the GPUs to use, in the form of ``CUDA_VISIBLE_DEVICES``.

    Args:
        asked: how many, or their names with a comma; all that are shown without it.

    Raises:
        MachineError: there are not as many, or none of such a name.
    """
    shown = _names(os.environ.get("CUDA_VISIBLE_DEVICES", ""))
    source = "CUDA_VISIBLE_DEVICES names" if shown else "of one model this machine has"
    shown = shown or alike()
    if asked is None:
        return shown
    if "," not in asked:
        if int(asked) > len(shown):
            raise MachineError(
                f"--gpus {asked}: {source} {len(shown)}. Ask for fewer, or name them: --gpus 0,1."
            )
        return shown[: int(asked)]
    if unknown := [name for name in _names(asked) if name not in shown]:
        raise MachineError(f"--gpus {asked}: there is no GPU {unknown[0]}. There are: {', '.join(shown)}.")
    return _names(asked)


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _query(operation: str, request: BatchRequest, seed: int, **more: object) -> dict[str, Any]:
    return {
        "operation": operation,
        "assignment": str(request.assignment.folder),
        "options": asdict(request.options),
        "seed": seed,
        **more,
    }


def _grade_all(running: _Run, builders: Crew | None, graders: Crew) -> bool:
    """Grade all entries, those with a machine fault twice; return whether an interrupt ended it early."""
    faulty: dict[str, Record] = {}

    def first(entry: Entry, record: Record) -> None:
        if finished(record) or entry.name in running.broke:
            running.keep(entry, record)
        else:
            faulty[entry.name] = record
            running.say(f"{entry.name}  {_summary(record)}, it is graded again at the end")

    def second(entry: Entry, record: Record) -> None:
        running.keep(entry, record)
        del faulty[entry.name]

    if _grade_each(running, running.todo, builders, graders, first):
        return True
    again = [entry for entry in running.todo if entry.name in faulty]
    if _grade_each(running, again, builders, graders, second, alone=True):
        return True
    for entry in again:
        if entry.name in faulty:
            running.keep(entry, faulty[entry.name])
    return False


def _grade_each(
    running: _Run,
    entries: Sequence[Entry],
    builders: Crew | None,
    graders: Crew,
    take: Callable[[Entry, Record], None],
    *,
    alone: bool = False,
) -> bool:
    """Grade each entry and ``take`` its record when it is finished; return whether an interrupt ended this.

    With ``alone``, only one entry is graded at a time, because the machine failed to grade several.
    """
    ahead = 2 * (len(builders) if builders else 0)  # entries that are being built, or wait for a GPU
    crews = (graders, builders) if builders else (graders,)
    waiting: dict[Future[Record], Entry] = {}
    with (
        ThreadPoolExecutor(1 if alone else max(1, len(graders) + ahead)) as pool,
        suppress(KeyboardInterrupt),
        _stopped_early(pool, crews),
    ):
        # One by one: an interrupt meanwhile is to find those that have begun.
        waiting.update((pool.submit(_grade, running, entry, builders, graders), entry) for entry in entries)
        for future in as_completed(tuple(waiting)):
            try:
                take(waiting[future], future.result())
            except NoWorkerLeftError:
                running.stopped = "No GPU works any more. Repair that, then run the same command again."
            del waiting[future]
        return False
    for future, entry in waiting.items():  # some were finished just before the interrupt
        if not future.cancelled() and not future.exception() and finished(future.result()):
            take(entry, future.result())
    return True


@contextmanager
def _stopped_early(pool: ThreadPoolExecutor, crews: Iterable[Crew]) -> Iterator[None]:
    """A context that stops the crews if an exception leaves it; the pool would wait for their answers."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for crew in crews:
            crew.stop()
        raise


def _grade(running: _Run, entry: Entry, builders: Crew | None, graders: Crew) -> Record:
    """Grade one entry and return its record, which describes the failure if the grading failed.

    Raises:
        StoppedError: the batch was interrupted.
        NoWorkerLeftError: no GPU is left.
    """
    request, begun = running.request, datetime.now(UTC)
    try:
        with tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as scratch:
            path = str(entry.lay_out(Path(scratch)))
            built = None
            if builders is not None:
                with builders.worker() as worker, suppress(EndedError):
                    built = worker.ask(_query("build", request, running.seed, path=path))["built"]
            with graders.worker() as worker:
                # Those that are graded side by side draw the inputs of different problems first.
                turn = running.todo.index(entry)
                query = _query("grade", request, running.seed, path=path, built=built, turn=turn)
                record = _answered(running, worker, query, entry, begun)
                if worker.station.gpu and _may_have_broken_it(record):
                    return _checked(running, graders, worker, record, entry, begun)
                return record
    except OSError as error:
        file = f" ({error.filename})" if error.filename else ""
        message = f"the machine failed: {error.strerror}{file}. Repair it and grade again."
        return _faulty(message, entry, running, begun)


def _answered(
    running: _Run, worker: Worker, query: Mapping[str, Any], entry: Entry, begun: datetime
) -> Record:
    try:
        answer = worker.ask(query, lambda doing: running.say("", f"{entry.name}, {doing}"))
        record = _filed(Record.model_validate(answer["record"]), entry)
    except EndedError as error:
        message = f"{error} before it gave a record; its last output is in {entry.name}/{RECORD}"
        record = _faulty(f"{message}\n{error.said}".strip(), entry, running, begun)
    if not finished(record):
        worker.end()  # the next request starts a new process
    return record


def _may_have_broken_it(record: Record) -> bool:
    """Whether a case of the submission ended without an answer: crashed, hung or failed on the device."""
    cases = (case for problem in record.problems for case in problem.correctness.cases)
    return not finished(record) or any(
        case.verdict is not Verdict.PASS and not case.outputs for case in cases
    )


def _checked(
    running: _Run, graders: Crew, worker: Worker, record: Record, entry: Entry, begun: datetime
) -> Record:
    """The record if the worker's GPU still works; else a machine fault, and the GPU is not used any more."""
    gpu = worker.station.gpu
    try:
        machine = worker.ask(_query("look", running.request, running.seed))
    except EndedError as error:
        machine = {"error": str(error)}
    if "error" not in machine:
        running.say(f"GPU {gpu} works, checked after {entry.name}")
        return record
    graders.dismiss(gpu)
    running.broke.add(entry.name)
    message = f"GPU {gpu} stopped working after this submission: {machine['error']}"
    running.say(f"{entry.name}: {message}")
    return _faulty(message, entry, running, begun)


def _filed(record: Record, entry: Entry) -> Record:
    """The record with the submission's name in the batch, and with the notes from finding it."""
    submission = record.submission.model_copy(
        update={"name": entry.name, "notes": [*entry.notes, *record.submission.notes]}
    )
    return record.model_copy(update={"submission": submission})


def _faulty(error: str, entry: Entry, running: _Run, begun: datetime) -> Record:
    """A record for a grading that ended without one."""
    assignment = running.request.assignment
    problems = [
        without_cases(assignment, problem.id, Verdict.INFRA_ERROR, error.partition("\n")[0])
        for problem in assignment.rules.problems
    ]
    return Record(
        grader=grader_info(assignment),
        assignment=assignment.id,
        submission=SubmissionInfo(name=entry.name, sha256="", files=[], notes=list(entry.notes)),
        seed=running.seed,
        started=begun.isoformat(timespec="seconds"),
        seconds=round((datetime.now(UTC) - begun).total_seconds(), 3),
        score=total(problem.points for problem in problems),
        problems=problems,
        error=error,
        exit_code=ExitCode.MACHINE_FAULT,
    )


def _summary(record: Record) -> str:
    return _score(record) if finished(record) else f"machine fault: {plain(fault(record))}"


def _score(record: Record) -> str:
    return plain(record.not_graded) or f"{record.score.earned:.1f}/{record.score.decided:.1f}"
