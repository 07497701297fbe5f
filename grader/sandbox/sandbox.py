"""The protocol of sandboxes, which confine compiling and running; each back-end is a module.

A job is plain data. ``run`` waits for its end and returns an outcome. ``start`` returns a live process whose
stdin and stdout are a channel (the runner). Compiling and running are two jobs, and only the built library is
passed from the first to the second.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Protocol

from grader.records.errors import MachineError

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping
    from pathlib import Path


def lent_gpu() -> str:
    """The one GPU that a job gets: the first in ``CUDA_VISIBLE_DEVICES``."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


@dataclass(frozen=True)
class Limits:
    """The resources that a job may use; None means unlimited (such as address space with a GPU driver).

    Attributes:
        wall_seconds: protects against a machine that is too busy. If work or sleep is limited too, and both
            together fill less than half of this time, the job ends as BUSY; otherwise as TIMEOUT.
        processor_seconds: processor time of all processes of the job together.
        asleep_seconds: total time in which all its threads wait for something other than a processor.
    """

    wall_seconds: float
    processor_seconds: float | None = None
    asleep_seconds: float | None = None
    address_space_bytes: int | None = None
    data_bytes: int | None = None
    processes: int = 64  # with their threads
    file_bytes: int = 256 << 20
    output_bytes: int = 1 << 20  # of stderr, and of stdout unless it is a channel; more is dropped
    scratch_bytes: int = 256 << 20
    open_files: int = 256


@dataclass(frozen=True)
class Job:
    """One program to run. Of the user's files, only ``inputs`` are visible, and they are read-only.

    ``witness`` is one of ``pass_fds``: a file in memory to which the program writes a stack trace when asked.
    """

    argv: tuple[str, ...]
    limits: Limits
    inputs: tuple[Path, ...] = ()  # files and folders, visible under their own paths
    outputs: tuple[str, ...] = ()  # files, relative to the working folder, whose content is collected
    files: Mapping[str, bytes] = field(
        default_factory=dict
    )  # written into the working folder before the start
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    gpu: bool = False
    witness: int | None = None


class Ended(StrEnum):
    """How a job ended. BUSY, SETUP_ERROR and LOST are faults of the machine and never cost points."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMEOUT = "timeout"  # the job's own work or sleep; the note says which
    BUSY = "busy"  # the machine gave it too little of its processors
    MEMORY = "memory"
    OUTPUT = "output"  # printed or written too much; the note says which
    PROCESSES = "processes"
    SETUP_ERROR = "setup error"
    LOST = "lost"


@dataclass(frozen=True)
class Outcome:
    """The result of a job."""

    ended: Ended
    code: int  # exit code, or the signal's number
    seconds: float
    stdout: bytes
    stderr: bytes
    truncated: bool
    artefacts: Mapping[str, bytes]
    note: str = ""
    processor_seconds: float = 0.0


@dataclass(frozen=True)
class Usage:
    """The time that all processes of a job have used; a busy machine does not increase it."""

    processor_seconds: float
    asleep_seconds: float


@dataclass(frozen=True)
class Probe:
    """The abilities of a back-end on this machine."""

    usable: bool
    version: str
    enforced: tuple[str, ...]
    not_enforced: tuple[str, ...]
    remedy: str  # what to do if it is not usable: a command


@dataclass(frozen=True)
class Image:
    """The programs that jobs use if a back-end does not show them those of this machine."""

    identity: str  # changes with its content
    python: Path
    python_version: str  # such as 3.12
    nvcc: Path
    nvcc_version: str
    cxx: Path
    cxx_version: str
    runtime: Path | None  # the folder of the CUDA runtime library

    @property
    def folders(self) -> tuple[Path, ...]:
        """The folders that a job must see from the image, even if this machine has folders of these names."""
        runtime = () if self.runtime is None else (self.runtime,)
        return (self.nvcc.parent.parent, *runtime)


class Running(Protocol):
    """A live job whose stdin and stdout belong to the caller. Its stderr is drained and capped."""

    stdin: BinaryIO
    stdout: BinaryIO

    @property
    def flooded(self) -> bool:
        """Whether the job has printed more than is kept, so far."""

    def usage(self) -> Usage:
        """The time that the job has used so far, as sampled, or in total after its end; returns at once."""

    def witness(self, seconds: float) -> str:
        """The stack trace that the job writes within ``seconds``, which may be incomplete or "".

        The job can forge it. It must be asked for only before the job is ended, because it disturbs the job.
        """

    def wait(self, seconds: float) -> Outcome | None:
        """The outcome, or None if the job still runs after ``seconds``."""

    def kill(self) -> Outcome:
        """End the job and all its descendants."""


class Sandbox(Protocol):
    """One way to confine a job."""

    name: str

    @property
    def image(self) -> Image | None:
        """The programs that jobs use; None if they use those of this machine."""

    def probe(self) -> Probe:
        """Whether this back-end works on this machine, which is tried out."""

    def run(self, job: Job, given_up: threading.Event | None = None) -> Outcome:
        """Run ``job`` to its end within its limits, or until another thread sets ``given_up``."""

    def start(self, job: Job) -> Running:
        """Start ``job`` with its stdin and stdout connected to the caller."""


class SandboxError(MachineError):
    """The machine cannot confine the job; the message says what to install or which option to use."""
