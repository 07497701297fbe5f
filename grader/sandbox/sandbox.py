"""What confines compiling and running: one protocol, a backend per module.

A job is plain data. ``run`` waits for it and returns an outcome; ``start`` gives a live process whose stdin
and stdout are a channel (the runner). Compiling and running are two jobs: only the built object crosses.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, BinaryIO, Protocol

from grader.records.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def lent_gpu() -> str:
    """The one GPU that a job gets, as ``CUDA_VISIBLE_DEVICES`` names it: the first of several."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


@dataclass(frozen=True)
class Limits:
    """What a job may use; None is unlimited, where the job needs it (address space beside a GPU driver).

    Attributes:
        wall_seconds: the guard against a machine that is too busy. A job that meets it, although its work or
            its sleep is bounded and both fill less than half of it, is BUSY. Alone, it is a plain limit.
        processor_seconds: that all processes of the job may use together.
        asleep_seconds: in all, during which each of its threads waits for something other than a processor.
    """

    wall_seconds: float
    processor_seconds: float | None = None
    asleep_seconds: float | None = None
    address_space_bytes: int | None = None
    data_bytes: int | None = None
    processes: int = 64  # with their threads
    file_bytes: int = 256 << 20
    output_bytes: int = 1 << 20  # of stderr (and stdout where it is no channel); more is dropped, and said
    scratch_bytes: int = 256 << 20
    open_files: int = 256


@dataclass(frozen=True)
class Job:
    """One program to run: ``inputs`` are visible and read-only, nothing else of the user's is.

    ``witness`` is one of ``pass_fds``: a file in memory to which the program tells where it is, when asked.
    """

    argv: tuple[str, ...]
    limits: Limits
    inputs: tuple[Path, ...] = ()  # files and folders, seen under their own paths
    outputs: tuple[str, ...] = ()  # names, relative to the working folder, collected afterwards as data
    files: Mapping[str, bytes] = field(
        default_factory=dict
    )  # written into the working folder before the start
    environment: Mapping[str, str] = field(default_factory=dict)
    pass_fds: tuple[int, ...] = ()
    gpu: bool = False
    witness: int | None = None


class Ended(StrEnum):
    """How a job ended. BUSY, SETUP_ERROR and LOST are faults of the machine, never points lost."""

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
    """What became of a job."""

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
    """What a job has used, its processes together; neither grows because the machine is busy."""

    processor_seconds: float
    asleep_seconds: float


@dataclass(frozen=True)
class Probe:
    """What a backend can do on this machine."""

    usable: bool
    version: str
    enforced: tuple[str, ...]
    not_enforced: tuple[str, ...]
    remedy: str  # what to do if it is not usable: a command


@dataclass(frozen=True)
class Image:
    """The programs that jobs see where a backend does not show them this machine's."""

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
        """What a job finds in the image although this machine may have other things there."""
        runtime = () if self.runtime is None else (self.runtime,)
        return (self.nvcc.parent.parent, *runtime)


class Running(Protocol):
    """A live job whose stdin and stdout belong to the caller. Its stderr is drained and capped."""

    stdin: BinaryIO
    stdout: BinaryIO

    @property
    def flooded(self) -> bool:
        """Whether it has printed more than is kept, so far."""

    def usage(self) -> Usage:
        """What it has used so far, as sampled, or in all once it has ended; waits for nothing."""

    def witness(self, seconds: float) -> str:
        """Where the job says that it is, if it does so within ``seconds``, else what it told of that or "".

        It may say what it likes. To be asked for once a call is to be ended, as that disturbs it.
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
        """What jobs see instead of this machine's programs, None where they see those."""

    def probe(self) -> Probe:
        """Whether this backend works on this machine; it is tried."""

    def run(self, job: Job) -> Outcome:
        """Run ``job`` to its end within its limits."""

    def start(self, job: Job) -> Running:
        """Start ``job`` with its stdin and stdout connected to the caller."""


class SandboxError(MachineError):
    """The machine cannot confine the job; the message says what to install or which option to give."""
