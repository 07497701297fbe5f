"""The grader's side of a running job: starts a keeper, drains the job's output, and reports how it ended."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol

from grader.runner import witness
from grader.sandbox import cgroup
from grader.sandbox.sandbox import Ended, Outcome, SandboxError, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.sandbox.sandbox import Job, Limits

UNMAPPED = "memory in files that no process maps"
_USAGE_BYTES = 16
_POLL_SECONDS = 0.005
_LOOK_SECONDS = 0.2  # how often a wait looks whether it is given up
_OWN_PROCESSES = 4  # processes of bwrap and of a shell for the results, beside the job
_GRACE_SECONDS = 15.0  # longer than the keeper waits for killed processes
_LATE_SECONDS = 60.0  # how late a keeper may be on a busy machine


class Keeper(Protocol):
    """The process between the grader and a job: ``keeper.py``, on this machine or in a container."""

    def wait(self, seconds: float) -> bool:
        """Whether the keeper ended within ``seconds``."""

    def kill(self) -> tuple[Ended, str]:
        """Kill the keeper and its job if they still run.

        Returns:
            How the job ended if the keeper did not report it, and a note on how the keeper ended.
        """


@dataclass(frozen=True)
class Streams:
    """The keeper's ends of a job's pipes, to be closed once it has them. It ends when the lifeline closes.

    ``usage`` is a memory file of two doubles, to which it writes the time that the job has used.
    """

    stdin: int
    stdout: int
    stderr: int
    status: int
    lifeline: int
    usage: int

    @property
    def all(self) -> tuple[int, ...]:
        """All descriptors."""
        return (self.stdin, self.stdout, self.stderr, self.status, self.lifeline, self.usage)


@dataclass(frozen=True)
class Command:
    """The command that a back-end made from a job."""

    argv: tuple[str, ...]
    folder: Path  # the working folder
    environment: Mapping[str, str]
    finish: Callable[[Outcome], Outcome]  # called once, after the end: adds the artefacts and cleans up
    pass_fds: tuple[int, ...] = ()
    readable: tuple[Path, ...] | None = None  # paths that it may read, for Landlock; None without Landlock
    scratch: Path | None = None  # a folder whose size is watched, unless a file system limits it
    own_folders: tuple[str, ...] = ()  # folders of limited size in which the number of files is watched
    rlimits: Mapping[str, int] = field(default_factory=dict)
    groups: tuple[Path, ...] = ()  # control groups to run in, which the keeper removes, or else the grader


def rlimits(limits: Limits) -> dict[str, int]:
    """The limits that the kernel enforces per process, by the names of the ``resource`` module."""
    values = {
        "RLIMIT_AS": limits.address_space_bytes,
        "RLIMIT_DATA": limits.data_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def temporary_space() -> Iterator[None]:
    """A context in which an OSError becomes a message on what to do about temporary files.

    Raises:
        SandboxError: a temporary file cannot be written.
    """
    try:
        yield
    except OSError as error:
        raise SandboxError(
            f"cannot write to the temporary folder {tempfile.gettempdir()}: {error.strerror}\n"
            "Free some space there, or set TMPDIR to another folder."
        ) from error


class Drain(threading.Thread):
    """Reads a pipe to its end, so that its writers never block, and keeps the first ``most`` bytes."""

    def __init__(self, fd: int, most: int) -> None:
        super().__init__(daemon=True)
        self._fd = fd
        self._most = most
        self._kept = bytearray()
        self.truncated = False
        self.start()

    def run(self) -> None:
        """Drain until the last writer has closed the pipe."""
        while chunk := os.read(self._fd, 1 << 16):
            room = self._most - len(self._kept)
            self._kept += chunk[:room]
            self.truncated |= len(chunk) > room
        os.close(self._fd)

    def content(self) -> bytes:
        """Wait for the end of the pipe and return the bytes that were kept."""
        self.join(_GRACE_SECONDS)
        return bytes(self._kept)


def config(job: Job, command: Command) -> dict[str, object]:
    """The configuration of a keeper, still without the numbers of its descriptors."""
    limits = job.limits
    return {
        "argv": command.argv,
        "folder": str(command.folder),
        "environment": dict(command.environment),
        "pass_fds": command.pass_fds,
        "rlimits": dict(command.rlimits),
        "groups": [str(group) for group in command.groups],
        "processes": limits.processes,
        "memory_bytes": memory_bytes(limits),
        "readable": None if command.readable is None else [str(path) for path in command.readable],
        "scratch": str(command.scratch) if command.scratch else None,
        "scratch_bytes": limits.scratch_bytes,
        "own_folders": command.own_folders,
        "wall_seconds": limits.wall_seconds,
        "processor_seconds": limits.processor_seconds,
        "asleep_seconds": limits.asleep_seconds,
    }


def groups(limits: Limits, also_bytes: int) -> tuple[Path, ...]:
    """Control groups for a job with these limits; empty where none can be created.

    Args:
        limits: limits of the job.
        also_bytes: further memory for the job's files in memory.
    """
    memory = memory_bytes(limits)
    most = None if memory is None else memory + also_bytes
    return cgroup.make(most, limits.processes + _OWN_PROCESSES) if cgroup.available() else ()


def bounds() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Texts on how memory and number of a local job's processes are limited, and on what is not limited."""
    if cgroup.available():
        return ("memory of each process, and of all together", "number of processes"), ()
    held = ("memory of each process, and of all together as sampled", "number of processes, as sampled")
    return held, (f"memory of many processes between two samples, {UNMAPPED}",)


def memory_bytes(limits: Limits) -> int | None:
    """The memory limit for all processes of a job together."""
    return limits.data_bytes if limits.data_bytes is not None else limits.address_space_bytes


class LocalKeeper:
    """A keeper that is a process of this machine."""

    def __init__(self, settings: Mapping[str, object], streams: Streams, pass_fds: Sequence[int]) -> None:
        program = str(Path(__file__).with_name("keeper.py"))
        numbers = {"lifeline_fd": streams.lifeline, "status_fd": streams.status, "usage_fd": streams.usage}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", program, json.dumps({**settings, **numbers})],
            stdin=streams.stdin,
            stdout=streams.stdout,
            stderr=streams.stderr,
            pass_fds=(*numbers.values(), *pass_fds),
            start_new_session=True,  # only the grader gets Ctrl-C, and it then ends its jobs
            env={"PATH": "/usr/bin:/bin"},
        )

    def wait(self, seconds: float) -> bool:
        """See ``Keeper``; ``Popen.wait`` would only look every 50 ms."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # another thread has reaped it
                ended = os.pidfd_open(self._process.pid)
                poll = select.poll()
                poll.register(ended, select.POLLIN)
                poll.poll(1000 * max(0.0, seconds))
                os.close(ended)
        return self._process.poll() is not None

    def kill(self) -> tuple[Ended, str]:
        """See ``Keeper``."""
        self._process.kill()
        return Ended.LOST, f"the keeper of the job ended with {self._process.wait()}"


class Live:
    """A job under its keeper; see ``Running``. Without ``channel``, stdin is empty and stdout drained."""

    def __init__(
        self, job: Job, command: Command, *, channel: bool, launch: Callable[[Streams], Keeper] | None = None
    ) -> None:
        self._command = command
        self._outcome: Outcome | None = None
        self._lock = threading.Lock()
        self._patience = job.limits.wall_seconds + _LATE_SECONDS
        stdin, feed = os.pipe()
        output, stdout = os.pipe()
        error, stderr = os.pipe()
        self._status, status = os.pipe()
        lifeline, self._lifeline = os.pipe()
        usage = os.memfd_create("usage")
        os.truncate(usage, _USAGE_BYTES)
        self._usage = memoryview(mmap.mmap(usage, _USAGE_BYTES)).cast("d")
        streams = Streams(stdin, stdout, stderr, status, lifeline, usage)
        try:
            if launch is not None:
                self._keeper = launch(streams)
            else:
                self._keeper = LocalKeeper(config(job, command), streams, command.pass_fds)
        except BaseException as cause:
            for fd in (feed, output, error, self._status, self._lifeline):
                os.close(fd)
            if isinstance(cause, OSError):
                raise SandboxError(f"cannot start a process: {cause}") from cause
            raise
        finally:
            for fd in streams.all:
                os.close(fd)
        self._witness = -1 if job.witness is None else os.dup(job.witness)
        self._begin = time.monotonic()
        self._stderr = Drain(error, job.limits.output_bytes)
        self._output: Drain | None = None
        if channel:
            self.stdin: BinaryIO = open(feed, "wb")  # noqa: PTH123, SIM115
            self.stdout: BinaryIO = open(output, "rb")  # noqa: PTH123, SIM115
        else:
            os.close(feed)
            self._output = Drain(output, job.limits.output_bytes)

    @property
    def flooded(self) -> bool:
        """Whether the job has printed more than is kept, so far."""
        return self._stderr.truncated or (self._output is not None and self._output.truncated)

    def usage(self) -> Usage:
        """The time that the job has used so far; returns at once."""
        return Usage(self._usage[0], self._usage[1])

    def witness(self, seconds: float) -> str:
        """The stack trace that the job writes; see ``Running``."""
        deadline = time.monotonic() + seconds
        with self._lock:
            if self._witness < 0 or self._lifeline < 0:
                return ""
            os.truncate(self._witness, 0)
            os.lseek(self._witness, 0, os.SEEK_SET)
            with contextlib.suppress(BrokenPipeError):  # its keeper has just ended
                os.write(self._lifeline, b"w")
        text = self._trace()
        while not text.endswith(witness.END) and time.monotonic() < deadline:
            ended = self._keeper.wait(_POLL_SECONDS)
            text = self._trace()  # also of a job that has just ended: the signal may have woken it
            if ended:
                break
        shown = text.decode("ascii", errors="replace")
        return "".join(letter for letter in shown if letter.isprintable() or letter == "\n")

    def _trace(self) -> bytes:
        """The two parts that the witness wrote, each of a limited size."""
        with self._lock:
            if self._witness < 0:
                return b""
            parts = [os.pread(self._witness, witness.HALF, offset) for offset in (0, witness.HALF)]
        return b"".join(part.strip(b"\0") for part in parts)

    def wait(self, seconds: float) -> Outcome | None:
        """The outcome, or None if the job still runs after ``seconds``."""
        remaining = self._begin + self._patience - time.monotonic()
        if self._keeper.wait(max(0.0, min(seconds, remaining))):
            return self._end()
        return self._late() if remaining < seconds else None

    def _late(self) -> Outcome:
        """Kill a job whose keeper is long overdue, which is not the job's fault."""
        outcome = self.kill()
        with self._lock:
            if outcome.ended is Ended.SIGNALLED:
                outcome = replace(outcome, ended=Ended.LOST, note="its keeper did not end the job in time")
            self._outcome = outcome
        return outcome

    def kill(self) -> Outcome:
        """End the job and all its descendants."""
        with self._lock:
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1
        if not self._keeper.wait(_GRACE_SECONDS):
            self._keeper.kill()
        return self._end()

    def _end(self) -> Outcome:
        with self._lock:
            if self._outcome is None:
                self._outcome = self._command.finish(self._report())
                cgroup.clear(self._command.groups)
                for fd in (self._lifeline, self._witness):
                    if fd >= 0:
                        os.close(fd)
                self._lifeline = self._witness = -1
                if self._output is None:
                    with contextlib.suppress(BrokenPipeError):  # the job did not read all of it
                        self.stdin.close()
                    self.stdout.close()
            return self._outcome

    def _report(self) -> Outcome:
        with open(self._status, "rb") as pipe:  # noqa: PTH123
            text = pipe.read()
        stderr = self._stderr.content()
        stdout = self._output.content() if self._output else b""
        if text:
            report = json.loads(text)
        else:
            seconds = time.monotonic() - self._begin
            used = self.usage().processor_seconds
            ended, note = self._keeper.kill()
            report = {"ended": ended.value, "code": 0, "note": note}
            report |= {"seconds": seconds, "processor_seconds": used}
        outcome = Outcome(
            ended=Ended(report["ended"]),
            code=report["code"],
            seconds=report["seconds"],
            stdout=stdout,
            stderr=stderr,
            truncated=self.flooded,
            artefacts={},
            note=report["note"],
            processor_seconds=report["processor_seconds"],
        )
        return name_limit(outcome)


def name_limit(outcome: Outcome) -> Outcome:
    """Name the limit if SIGXFSZ, or a shell that reports it, ended the job: it wrote too large a file."""
    number = outcome.code - (128 if outcome.ended is Ended.EXITED else 0)
    if outcome.ended in (Ended.EXITED, Ended.SIGNALLED) and number == signal.SIGXFSZ:
        return replace(outcome, ended=Ended.OUTPUT, note="a file larger than the limit")
    return outcome


def finish(live: Live, given_up: threading.Event | None = None) -> Outcome:
    """Wait for the end of a job, for which its keeper has a time-out.

    An interrupted wait ends the job, and so does ``given_up``, once another thread sets it.
    """
    try:
        while (outcome := live.wait(_LOOK_SECONDS if given_up else 3600)) is None:
            if given_up is not None and given_up.is_set():
                return live.kill()
    except BaseException:
        live.kill()
        raise
    return outcome
