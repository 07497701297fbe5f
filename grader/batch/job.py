"""Grades one submission as a Slurm job, for who sits at a cluster's login node.

The job is ``grader grade`` itself. It leaves its record in a folder that the nodes share, and from that all
is shown as if it had run here.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from grader.batch import slurm
from grader.records.errors import MachineError
from grader.records.record import RecordError, read
from grader.reports.folder import RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.batch.slurm import Cluster
    from grader.records.record import Record
    from grader.run.grading import GradingRequest

_LOG = "job.log"
_LOG_LINES = 20
_PREFIX = ".slurm-"


def grade(request: GradingRequest, cluster: Cluster, tell: Callable[[str], None]) -> Record:
    """The record of a grading that runs as a job; ``tell`` is told what the job is doing.

    An interrupt cancels the job.

    Raises:
        MachineError: there is no Slurm, it rejects the job, the job left no record, or the working directory,
            which the nodes have to share, cannot be written to.
    """
    slurm.check_sbatch()
    try:
        place = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=Path.cwd())
    except OSError as error:
        raise MachineError(
            f"{Path.cwd()} cannot be written to: {error.strerror}. The job leaves its record there: go to a "
            "folder that the nodes share."
        ) from error
    with place as folder:
        job = _submit(
            _command(request, Path(folder, RECORD)), request.options.device, cluster, Path(folder, _LOG)
        )
        try:
            while slurm.alive(job):
                tell(f"job {job} {_state(job)}")
                time.sleep(slurm.POLL_SECONDS)
        except KeyboardInterrupt:
            slurm.cancel(job)
            raise
        try:
            return read(Path(folder, RECORD))
        except RecordError as error:
            raise MachineError(f"Job {job} left no record. {_last_words(Path(folder, _LOG))}") from error


def _command(request: GradingRequest, record: Path) -> list[str]:
    """The command line of the job, which grades the same."""
    flags = {"quiet": True, "profile": request.profile, "fast": request.fast}
    options = {**slurm.graded_alike(request), "json": record, **flags}
    problems = [word for name in request.problems for word in ("--problem", name)]
    return slurm.grader("grade", request.path, options) + problems


def _submit(words: Sequence[str], device: str, cluster: Cluster, log: Path) -> str:
    """Submit the job and return its id."""
    options = {
        "job-name": "grader",
        "time": str(cluster.minutes),
        "cpus-per-task": str(cluster.processors),
        "partition": cluster.partition,
        "account": cluster.account,
        "gpus-per-node": cluster.gpus(device),
        "output": str(log),
        **cluster.options,
    }
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    done = subprocess.run(
        ["sbatch", "--parsable", "--no-requeue", *given, "--wrap", shlex.join(words)],  # noqa: S607 - on PATH
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MachineError(f"Slurm rejects the job: {done.stderr.strip()}")
    return done.stdout.strip().partition(";")[0]


def _state(job: str) -> str:
    """What the job does: runs, or waits behind so many others of its partition."""
    state, _, partition = _ask("--jobs", job, "--format", "%T %P").partition(" ")
    if state != "PENDING":
        return "runs" if state == "RUNNING" else state.lower() or "ends"
    waiting = _ask("--states", "PENDING", "--partition", partition, "--sort=-p,i", "--format", "%i").split()
    return f"waits, {waiting.index(job)} before it" if job in waiting else "waits"


def _ask(*options: str) -> str:
    asked = ["squeue", "--noheader", *options]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def _last_words(log: Path) -> str:
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        lines = []
    said = "\n".join(lines[-_LOG_LINES:])
    return f"Its last words:\n{said}" if said else "It said nothing; was it cancelled, or did its node die?"
