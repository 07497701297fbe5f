"""The sandbox ``process``: limits, and Landlock where the kernel has it. For code that you trust."""

from __future__ import annotations

import os
import platform
import stat
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.processes import leftovers
from grader.sandbox.keeper import landlock_version
from grader.sandbox.live import Command, Live, bounds, finish, groups, rlimits, temporary_space
from grader.sandbox.sandbox import Probe, lent_gpu

if TYPE_CHECKING:
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
    # The version of Landlock that holds it, what then is held, and what is not without.
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
        """``walled``: whether to use Landlock; without it the job can do whatever the user can."""
        self._walls = landlock_version() if walled else 0

    def probe(self) -> Probe:
        """Usable on any Linux; says what it does not stop."""
        usable = hasattr(os, "pidfd_open")
        remedy = "" if usable else "Linux 5.3 or newer"
        (bounded, unbounded), (walled, open_) = bounds(), walls(self._walls)
        enforced = (*_ENFORCED, *bounded, *walled)
        return Probe(usable, platform.release(), enforced, (*unbounded, *open_), remedy)

    def run(self, job: Job) -> Outcome:
        """Run ``job`` to its end within its limits."""
        return finish(Live(job, self._command(job), channel=False))

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
            found = collect(folder, job.outputs, job.limits.file_bytes)
            leftovers.remove(folder)
            return replace(outcome, artefacts=found)

        places = {"HOME": str(folder), "TMPDIR": str(folder)}
        return Command(
            argv=job.argv,
            folder=folder,
            environment=clean_environment(job) | places | dict(job.environment),
            finish=finished,
            pass_fds=job.pass_fds,
            readable=(*map(Path, _SYSTEM), *job.inputs) if self._walls else None,
            scratch=folder,
            rlimits=rlimits(job.limits),
            groups=groups(job.limits, job.limits.scratch_bytes),
        )


def walls(landlock: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What this version of Landlock denies a job, and what stays possible."""
    held = tuple(wall for since, wall, _ in _WALLS if landlock >= since)
    return held, (*(lacking for since, _, lacking in _WALLS if landlock < since), *_NOT_ENFORCED)


def clean_environment(job: Job) -> dict[str, str]:
    """What every job sees: nothing of the user's, except which GPU is lent.

    That is one of them: nobody would wait for what a launcher does on another.

    PyTorch asks for the user's name, and the number of the job's user may have none.
    """
    environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "USER": "nobody"}
    if job.gpu:
        environment["CUDA_VISIBLE_DEVICES"] = lent_gpu()
    return environment


def collect(folder: Path, names: tuple[str, ...], most: int) -> Mapping[str, bytes]:
    """The results as data: regular files of at most ``most`` bytes, through no link; others are left out."""
    found: dict[str, bytes] = {}
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
            found[name] = content
    return found
