"""The sandbox ``process`` for code that you trust: limits, and Landlock where the kernel has it."""

from __future__ import annotations

import os
import platform
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.processes import leftovers
from grader.processes.threads import ONE_THREAD
from grader.sandbox.keeper import landlock_version
from grader.sandbox.live import Command, Live, bounds, finish, groups, rlimits, temporary_space
from grader.sandbox.sandbox import Probe, lent_gpu

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from grader.sandbox.sandbox import Job, Outcome

_ENFORCED = (
    "processor time, time asleep and wall time",
    "size of each file",
    "files in the working folder, as sampled",
    "printed output",
    "no process survives the job",
    "clean environment, no inherited descriptors",
)
_WALLS = (
    # The first version of Landlock that blocks it, the text if it is blocked, and the text if it is not.
    (
        1,
        "reading and writing files but the inputs, the system and the working folder",
        "reading and writing files: the submission can do whatever you can",
    ),
    (4, "TCP connections", "TCP connections"),
    (6, "signals to your other processes", "signals to your other processes, the grader included"),
)
_NOT_ENFORCED = (
    "network but for TCP, sockets in folders",
    "shared memory of System V: it outlives the job",
    "system calls",
)
_SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys"),
    *("/etc/ld.so.cache", "/etc/alternatives"),
)


class ProcessSandbox:
    """Runs a job as a process of this user, in a private temporary folder that is removed afterwards."""

    name = "process"
    image = None

    def __init__(self, *, walled: bool = True) -> None:
        """``walled``: whether to use Landlock; without it, the job can do everything that the user can do."""
        self._walls = landlock_version() if walled else 0

    def probe(self) -> Probe:
        """Usable on any Linux since 5.3; says what is not enforced."""
        usable = hasattr(os, "pidfd_open")
        remedy = "" if usable else "Linux 5.3 or newer"
        (bounded, unbounded), (walled, open_) = bounds(), walls(self._walls)
        enforced = (*_ENFORCED, *bounded, *walled)
        return Probe(usable, platform.release(), enforced, (*unbounded, *open_), remedy)

    def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
        """Run ``job`` to its end within its limits, or until another thread sets ``given_up``."""
        return finish(Live(job, self._command(job), channel=False), given_up)

    def start(self, job: Job) -> Live:
        """Start ``job`` with its stdin and stdout connected to the caller."""
        return Live(job, self._command(job), channel=True)

    def _command(self, job: Job) -> Command:
        with temporary_space():
            folder = Path(tempfile.mkdtemp(prefix=leftovers.prefix()))
            for name, content in job.files.items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)

        def finished(outcome: Outcome) -> Outcome:
            artefacts = collect(folder, job.outputs, job.limits.file_bytes)
            leftovers.remove(folder)
            return replace(outcome, artefacts=artefacts)

        folders = {"HOME": str(folder), "TMPDIR": str(folder)}
        return Command(
            argv=job.argv,
            folder=folder,
            environment=clean_environment(job) | folders | dict(job.environment),
            finish=finished,
            pass_fds=job.pass_fds,
            readable=(*map(Path, _SYSTEM), *job.inputs) if self._walls else None,
            scratch=folder,
            rlimits=rlimits(job.limits),
            groups=groups(job.limits, job.limits.scratch_bytes),
        )


def walls(landlock: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts on what this version of Landlock denies a job, and on what the job can still do."""
    denied = tuple(wall for since, wall, _ in _WALLS if landlock >= since)
    return denied, (*(lacking for since, _, lacking in _WALLS if landlock < since), *_NOT_ENFORCED)


def clean_environment(job: Job) -> dict[str, str]:
    """The environment of every job: nothing of the user's, except which GPU it may use.

    It may use only one GPU, because the grader would not wait for work of a launcher on another one. The user
    name is set because PyTorch asks for it, and the job's user id may have no name. Without ``ONE_THREAD``
    NumPy starts a thread for each processor, and 64 of these are more tasks than a job may have.
    """
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "nobody"} | ONE_THREAD
    if job.gpu:
        environment["CUDA_VISIBLE_DEVICES"] = lent_gpu()
    return environment


def collect(folder: Path, names: tuple[str, ...], most: int) -> Mapping[str, bytes]:
    """The contents of regular result files of at most ``most`` bytes; links and others are left out."""
    contents: dict[str, bytes] = {}
    for name in names:
        try:
            fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            continue
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            continue
        with open(fd, "rb") as file:  # noqa: PTH123
            content = file.read(most + 1)
        if len(content) <= most:
            contents[name] = content
    return contents
