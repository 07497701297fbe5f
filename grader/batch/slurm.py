"""Grades a batch on a Slurm cluster: a job array with one GPU per task and a shared folder for the records.

A task is ``grader batch --shard I/N`` on its node. It writes records and, when it ends by itself, a file with
its exit code. A shard without that file died with its node and is submitted again, but its records are kept.
Nothing else is read from a task, in particular none of submitit's pickle files.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from grader.batch.batch import (
    BatchProgress,
    BatchRequest,
    BatchResult,
    choose,
    find,
    keep_times,
    outcome,
)
from grader.batch.records import Records, class_seed, finished, storing
from grader.records.errors import MachineError
from grader.records.record import write_text
from grader.reports.folder import RECORD
from grader.run.grading import graded_files
from grader.run.options import words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.run.grading import GradingRequest
    from grader.submissions.discovery import Entry

INSTALL = "python -m pip install 'kernel-grader[slurm]'"
SUBMISSIONS = 3  # how often a shard that dies is submitted in all
POLL_SECONDS = 2.0
CANCEL_SECONDS = 60.0
PROCESSORS = 4
_FOLDER = ".slurm"
_RUNNING = "array"


@dataclass(frozen=True)
class Cluster:
    """The options of the Slurm job array.

    Attributes:
        tasks: number of shards; each asks for one GPU unless the batch is for the sim.
        minutes: time limit of a task.
        processors: processors of a task.
        partition: the Slurm partition; None for the default.
        account: the Slurm account; None for the default.
        options: further options of sbatch by name, without dashes.
    """

    tasks: int
    minutes: int
    processors: int = PROCESSORS
    partition: str | None = None
    account: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    def gpus(self, device: str) -> int | None:
        """How many to ask of a node; None where the simulator needs none, or the options say it."""
        return None if device == "sim" or "gres" in self.options else 1


@dataclass
class _Telling:
    """Tells of the records that all tasks have written since ``begun``, each once."""

    out: Path
    chosen: Sequence[Entry]
    begun: datetime
    progress: Callable[[BatchProgress], None]
    done: set[str] = field(default_factory=set)

    def tell(self, line: str = "") -> None:
        """A line for each new record, then ``line``."""
        for entry in self.chosen:
            if entry.name not in self.done and self._is_written(self.out / entry.name / RECORD):
                self.done.add(entry.name)
                self._tell(f"[{len(self.done)}/{len(self.chosen)}] {entry.name}")
        self._tell(line)

    def _tell(self, line: str) -> None:
        self.progress(BatchProgress(line, len(self.done), len(self.chosen)))

    def _is_written(self, path: Path) -> bool:
        try:
            return path.stat().st_mtime >= self.begun.timestamp()
        except OSError:
            return False


def cluster(
    tasks: int, minutes: int, partition: str | None, account: str | None, options: Mapping[str, str]
) -> Cluster:
    """The options of a command line, of which ``cpus-per-task`` is one of ``options``."""
    further = {name: value for name, value in options.items() if name != "cpus-per-task"}
    processors = int(options.get("cpus-per-task", PROCESSORS))
    return Cluster(tasks, minutes, processors, partition, account, further)


def run(request: BatchRequest, cluster: Cluster, progress: Callable[[BatchProgress], None]) -> BatchResult:
    """Grade as ``batch.run`` does, on the nodes of a cluster; returns when the last task has ended.

    Raises:
        FolderError: as for ``batch.run``.
        MachineError: Slurm or submitit is missing, Slurm rejects the job, or an earlier array still runs.
        StorageError: the shared folder cannot be written.
        TableError: as for ``batch.run``.
    """
    check()
    keep_times(request)
    discovery = find(request.folder, graded_files(request.assignment))
    chosen = choose(discovery.entries, request.only, request.shard)
    begun = datetime.now(UTC)
    home = request.out.resolve() / _FOLDER
    with storing(home):
        home.mkdir(parents=True, exist_ok=True)
    _refuse_two(home / _RUNNING)
    if request.seed is None:
        class_seed(request.out)
    ends = home / begun.strftime("%Y%m%d-%H%M%S-%f")
    with storing(ends):
        ends.mkdir()
    shards = list(range(1, cluster.tasks + 1))
    telling = _Telling(request.out, chosen, begun, progress)
    interrupted = False
    for attempt in range(SUBMISSIONS):
        if attempt:
            which = ", ".join(f"{number}/{cluster.tasks}" for number in shards)
            telling.tell(f"died and is submitted again: shard {which}")
        array = _submit(request, cluster, shards, ends)
        with storing(home):
            write_text(f"{array}\n", home / _RUNNING)
        telling.tell(f"array {array} of {len(shards)} tasks is submitted")
        interrupted = _wait(array, telling.tell)
        telling.tell()
        shards = [number for number in shards if not (ends / str(number)).exists()]
        if interrupted or not shards:
            break
    records = Records(request.out.resolve(), request.assignment.title)
    records.expect(discovery.entries)
    records.show_all()
    results = {entry.name: records[entry.name] for entry in chosen}
    old = (
        record for entry in chosen if not records.made_since(entry, begun) and (record := records[entry.name])
    )
    kept = sum(finished(record) for record in old)
    died = ", ".join(str(number) for number in shards)
    stopped = f"Shards that died {SUBMISSIONS} times: {died}; see {ends}." if died and not interrupted else ""
    return outcome(
        results, kept, discovery, interrupted=interrupted, stopped=stopped, damaged=records.damaged
    )


def check() -> None:
    """Check that this machine can submit an array; raises MachineError if sbatch or submitit is missing."""
    check_sbatch()
    try:
        import submitit  # noqa: F401, PLC0415 - an extra
    except ImportError as error:
        raise MachineError(f"submitit is not installed. Install it:\n  {INSTALL}") from error


def check_sbatch() -> None:
    """Check that this machine can submit to a Slurm cluster; raises MachineError if not."""
    if shutil.which("sbatch") is None:
        raise MachineError("There is no sbatch here. Run this on a login node of the Slurm cluster.")


def shard(command: Sequence[str], end: str) -> None:
    """The work of one task: run ``command``, then write its exit code to the file ``end``."""
    code = subprocess.run(command, check=False).returncode
    if code >= 0:
        write_text(f"{code}\n", Path(end))


def command(request: BatchRequest, cluster: Cluster, number: int) -> list[str]:
    """The command line of task ``number``, from 1."""
    options = {
        "out": request.out.resolve(),
        **graded_alike(request),
        "jobs": request.jobs or cluster.processors,
        "since": request.since and request.since.isoformat(timespec="seconds"),
        "shard": f"{number}/{cluster.tasks}",
    }
    line = grader("batch", request.folder, options)
    return line + [word for name in request.only for word in ("--only", name)]


def graded_alike(request: BatchRequest | GradingRequest) -> dict[str, object]:
    """The options by which a job grades as was asked here; unless another device was, on a GPU."""
    options = request.options
    on_node = replace(options, device="gpu") if options.device == "auto" else options
    return {"assignment": request.assignment.folder, "seed": request.seed, **asdict(on_node)}


def grader(name: str, path: Path, options: Mapping[str, object]) -> list[str]:
    """The command line of a grader's command, with those options that have a value or are on."""
    return [sys.executable, "-P", "-m", "grader", name, str(path.resolve()), *words(options)]


def _submit(request: BatchRequest, cluster: Cluster, shards: Sequence[int], ends: Path) -> str:
    """Submit the job array and return its id."""
    import submitit  # noqa: PLC0415 - an extra
    from submitit.core.utils import FailedJobError  # noqa: PLC0415

    executor = submitit.SlurmExecutor(folder=ends)
    executor.update_parameters(
        job_name="grader",
        time=cluster.minutes,
        cpus_per_task=cluster.processors,
        gpus_per_node=cluster.gpus(request.options.device),
        partition=cluster.partition,
        account=cluster.account,
        array_parallelism=len(shards),
        # The grader itself submits a shard again, only if it left no file with its exit code.
        additional_parameters={"no-requeue": True, **cluster.options},
    )
    try:
        jobs = executor.map_array(
            shard,
            [command(request, cluster, number) for number in shards],
            [str(ends / str(number)) for number in shards],
        )
    except FailedJobError as error:
        raise MachineError(f"Slurm rejects the job: {error}") from error
    return str(jobs[0].job_id).partition("_")[0]


def _wait(array: str, tick: Callable[[], None]) -> bool:
    """Wait until all tasks of ``array`` have ended; return True if an interrupt cancelled them."""
    try:
        while alive(array):
            tick()
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        cancel(array)  # records that they finish now still count
        return True
    return False


def cancel(job: str) -> None:
    """Cancel a job, or an array, and wait until it has ended."""
    subprocess.run(["scancel", job], check=False)  # noqa: S607 - Slurm's tools are where PATH says
    deadline = time.monotonic() + CANCEL_SECONDS
    while alive(job) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def alive(array: str) -> bool:
    """Whether a task of ``array`` waits or runs; True if the Slurm controller does not answer."""
    query = ["squeue", "--noheader", "--array", "--jobs", array, "--format", "%T"]
    answer = subprocess.run(query, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        return "Invalid job id" not in answer.stderr
    return bool(answer.stdout.strip())


def _refuse_two(running: Path) -> None:
    """Raise MachineError if an earlier array still grades into the same folder."""
    if running.exists() and alive(array := running.read_text(encoding="ascii").strip()):
        raise MachineError(
            f"Array {array} still grades into {running.parent.parent}. Wait for it, or end it:\n"
            f"  scancel {array}"
        )
