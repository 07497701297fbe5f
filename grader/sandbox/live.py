"""The grader's side of a running job: starts a keeper, drains what the job prints, and tells how it ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from grader.sandbox.sandbox import Ended, Outcome, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.sandbox.sandbox import Job, Limits

_GRACE_SECONDS = 15.0  # above the keeper's own patience


@dataclass(frozen=True)
class Command:
    """What a backend made of a job."""

    argv: tuple[str, ...]
    folder: Path  # where it starts
    environment: Mapping[str, str]
    finish: Callable[[Outcome], Outcome]  # called once, after the end: adds the artefacts and cleans up
    pass_fds: tuple[int, ...] = ()
    scratch: Path | None = None  # the folder to watch, where nothing else bounds what is written
    rlimits: Mapping[str, int] = field(default_factory=dict)


def rlimits(limits: Limits) -> dict[str, int]:
    """The limits that the kernel holds per process, by the names of the ``resource`` module."""
    wanted = {
        "RLIMIT_AS": limits.address_space_bytes,
        "RLIMIT_DATA": limits.data_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_CORE": 0,
    }
    return {name: value for name, value in wanted.items() if value is not None}


class Drain(threading.Thread):
    """Reads a pipe to its end, so that nobody blocks on it, and keeps the first ``most`` bytes."""

    def __init__(self, fd: int, most: int) -> None:
        super().__init__(daemon=True)
        self._fd = fd
        self._most = most
        self._kept = bytearray()
        self.truncated = False
        self.start()

    def run(self) -> None:
        """Drain until the last writer is gone."""
        while chunk := os.read(self._fd, 1 << 16):
            room = self._most - len(self._kept)
            self._kept += chunk[:room]
            self.truncated |= len(chunk) > room
        os.close(self._fd)

    def content(self) -> bytes:
        """What was kept, once the pipe has ended."""
        self.join(_GRACE_SECONDS)
        return bytes(self._kept)


class Live:
    """A job under its keeper; see ``Running``. Without ``channel``, stdin is empty and stdout drained."""

    def __init__(self, job: Job, command: Command, *, channel: bool) -> None:
        self._command = command
        self._outcome: Outcome | None = None
        self._lock = threading.Lock()
        self._begin = time.monotonic()
        limits = job.limits
        lifeline, self._lifeline = os.pipe()
        self._status, status = os.pipe()
        error, error_end = os.pipe()
        config = {
            "argv": command.argv,
            "folder": str(command.folder),
            "environment": dict(command.environment),
            "pass_fds": command.pass_fds,
            "rlimits": dict(command.rlimits),
            "processes": limits.processes,
            "memory_bytes": limits.data_bytes
            if limits.data_bytes is not None
            else limits.address_space_bytes,
            "scratch": str(command.scratch) if command.scratch else None,
            "scratch_bytes": limits.scratch_bytes,
            "wall_seconds": limits.wall_seconds,
            "lifeline_fd": lifeline,
            "status_fd": status,
        }
        keeper = str(Path(__file__).with_name("keeper.py"))
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", keeper, json.dumps(config)],
                stdin=subprocess.PIPE if channel else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=error_end,
                pass_fds=(lifeline, status, *command.pass_fds),
                start_new_session=True,  # Ctrl-C is for the grader, which then ends its jobs
                env={"PATH": "/usr/bin:/bin"},
            )
        except OSError as cause:
            for fd in (self._lifeline, self._status, error):
                os.close(fd)
            raise SandboxError(f"cannot start a process: {cause}") from cause
        finally:
            for fd in (lifeline, status, error_end):
                os.close(fd)
        self._stderr = Drain(error, limits.output_bytes)
        assert self._keeper.stdout is not None
        self.stdout: BinaryIO = self._keeper.stdout  # type: ignore[assignment]
        self._output: Drain | None = None
        if channel:
            assert self._keeper.stdin is not None
            self.stdin: BinaryIO = self._keeper.stdin  # type: ignore[assignment]
        else:
            self._output = Drain(os.dup(self.stdout.fileno()), limits.output_bytes)
            self.stdout.close()

    def wait(self, seconds: float) -> Outcome | None:
        """The outcome, or None if the job still runs after ``seconds``."""
        try:
            self._keeper.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        return self._end()

    def kill(self) -> Outcome:
        """End the job and all its descendants."""
        with self._lock:
            if self._lifeline >= 0:
                os.close(self._lifeline)
                self._lifeline = -1
        try:
            self._keeper.wait(_GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        return self._end()

    def _end(self) -> Outcome:
        with self._lock:
            if self._outcome is None:
                self._outcome = self._command.finish(self._report())
                if self._lifeline >= 0:
                    os.close(self._lifeline)
                    self._lifeline = -1
                if self._output is None:
                    with contextlib.suppress(BrokenPipeError):  # what the job never read
                        self.stdin.close()
                    self.stdout.close()
            return self._outcome

    def _report(self) -> Outcome:
        with open(self._status, "rb") as pipe:  # noqa: PTH123
            text = pipe.read()
        stderr = self._stderr.content()
        stdout = self._output.content() if self._output else b""
        truncated = self._stderr.truncated or (self._output is not None and self._output.truncated)
        if text:
            report = json.loads(text)
        else:
            why = f"the keeper of the job ended with {self._keeper.returncode}"
            report = {"ended": "lost", "code": 0, "seconds": time.monotonic() - self._begin, "note": why}
        outcome = Outcome(
            ended=Ended(report["ended"]),
            code=report["code"],
            seconds=report["seconds"],
            stdout=stdout,
            stderr=stderr,
            truncated=truncated,
            artefacts={},
            note=report["note"],
        )
        return name_limit(outcome)


def name_limit(outcome: Outcome) -> Outcome:
    """The kernel ends a process that writes too large a file by SIGXFSZ, or a shell says so: name it."""
    number = outcome.code - (128 if outcome.ended is Ended.EXITED else 0)
    if outcome.ended in (Ended.EXITED, Ended.SIGNALLED) and number == signal.SIGXFSZ:
        return replace(outcome, ended=Ended.OUTPUT, note="a file larger than the limit")
    return outcome


def finish(live: Live) -> Outcome:
    """Wait for the end of a job that its keeper bounds in time; whatever interrupts the wait ends the job."""
    try:
        while (outcome := live.wait(3600)) is None:
            pass
    except BaseException:
        live.kill()
        raise
    return outcome
