"""A process in a sandbox that has imported Triton and compiles the kernels of one file, each in a fork.

Importing Triton and making a sandbox take longer than most kernels. Whatever goes wrong here is no result: a
job for that kernel alone then says what is wrong with it, within its own limits.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from grader.devices.patience import Allowance, Patience
from grader.runner.protocol import Channel, ClosedError, ExpiredError, MalformedError
from grader.sandbox.sandbox import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from grader.sandbox.sandbox import Job, Running, Sandbox

MOST_BYTES = 64 << 20  # of what becomes of one kernel


class Resident:
    """The process, which starts with the first kernel and lives until it is closed.

    Args:
        sandbox: what confines it.
        job: the program, the file, and the limits of one kernel; it names no specialisation.
    """

    def __init__(self, sandbox: Sandbox, job: Job) -> None:
        self._sandbox = sandbox
        self._job = job
        self._lock = threading.Lock()
        self._running: Running | None = None
        self._closed = False

    def built(
        self, specialisation: Mapping[str, Any], given_up: threading.Event | None
    ) -> Mapping[str, bytes] | None:
        """The files that a job for this kernel alone would leave; None if there are none of them.

        ``given_up`` is set by another thread to end the wait.
        """
        with self._lock:
            if self._closed:
                return None
            try:
                running = self._running = self._running or self._sandbox.start(self._lasting_job())
                channel = Channel(running.stdout.fileno(), running.stdin.fileno())
                over = self._over(running, given_up)
                frame = channel.exchange({"specialisation": specialisation}, (), MOST_BYTES, over)
                return _files(frame.header.get("sizes"), bytes(frame.payload))
            except (SandboxError, ClosedError, ExpiredError, MalformedError):
                self._end()
                return None

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._closed = True
            self._end()

    def _end(self) -> None:
        if self._running is not None:
            self._running.kill()
            self._running = None

    def _lasting_job(self) -> Job:
        """The job with what counts for one kernel taken off its limits, as it has many and waits for them."""
        limits = replace(self._job.limits, processor_seconds=None, asleep_seconds=None)
        return replace(self._job, limits=limits)

    def _over(self, running: Running, given_up: threading.Event | None) -> Callable[[], bool]:
        patience = Patience(running.usage, Allowance(self._job.limits.processor_seconds or 0.0))
        return lambda: patience.over() or (given_up is not None and given_up.is_set())


def _files(sizes: object, payload: bytes) -> Mapping[str, bytes]:
    """The files of an answer, which code of the file may have forged.

    Raises:
        MalformedError: it does not say where each begins.
    """
    files, at = {}, 0
    for entry in sizes if isinstance(sizes, list) else []:
        match entry:
            case [str(name), int(size)] if 0 <= size <= len(payload) - at:
                files[name] = payload[at : at + size]
                at += size
            case _:
                raise MalformedError("the answer has no files of these sizes")
    return files
