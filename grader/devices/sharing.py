"""Who uses a GPU at a time: what is timed has it alone, and everything else shares it.

This holds for all processes of a user on a machine: two gradings at once, the workers of a batch, the tasks
of a cluster on one node. The lock is one of readers and writers, made of files, four per GPU, that the kernel
unlocks when their holder ends, however it ends. ``flock`` is used directly, because the locks of the library
``filelock`` cannot be shared in this way. Whoever wants the GPU takes the *gate* first, and keeps it until
the GPU is theirs. So those who share it, one after the other, cannot keep out who waits to have it alone.

Those who wait to have it alone cannot keep the others out either, who use it a hundred times for some
milliseconds: who has the next *turn* lets those in who *want* to share it, for ``SHARED_SECONDS``.
"""

from __future__ import annotations

import fcntl
import os
import re
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grader.processes import locks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Waiting = Callable[[], None]
    """Called again and again while somebody waits; may raise to end that."""

POLL_SECONDS = 0.002
SHARED_SECONDS = 0.03
WAITING = "waiting for the GPU, which another grading has"


def _patient() -> None:
    """Wait however long it takes."""


class _RefusedError(Exception):
    """Somebody else has a lock."""


def _refuse() -> None:
    raise _RefusedError


class Sharing:
    """The lock of one GPU.

    A thread may share the GPU again that it has already, as the launches that the judge makes for a model do.
    It must not ask to have it alone before it leaves it.
    """

    def __init__(self, gpu: str) -> None:
        """Of the GPU with the name ``gpu``, by which all processes know it."""
        self._name = re.sub(r"[^\w.-]", "-", gpu)
        self._thread = threading.local()

    @contextmanager
    def alone(self, waiting: Waiting = _patient) -> Iterator[None]:
        """Have the GPU while nobody else uses it.

        Raises:
            LocksError: there can be no locks here.
        """
        with self._locked("turn", fcntl.LOCK_EX, waiting):
            if self._wanted():
                end = time.monotonic() + SHARED_SECONDS
                while time.monotonic() < end:
                    waiting()
                    time.sleep(POLL_SECONDS)
            with self._held(fcntl.LOCK_EX, waiting):
                yield

    @contextmanager
    def shared(self, waiting: Waiting = _patient) -> Iterator[None]:
        """Use the GPU beside others, while nobody else has it alone.

        Raises:
            LocksError: there can be no locks here.
        """
        if getattr(self._thread, "has_gpu", False):
            yield
        else:
            with self._locked("wanted", fcntl.LOCK_SH, waiting), self._held(fcntl.LOCK_SH, waiting):
                yield

    def _wanted(self) -> bool:
        """Whether somebody shares the GPU, or waits for that."""
        try:
            with self._locked("wanted", fcntl.LOCK_EX, _refuse):
                return False
        except _RefusedError:
            return True

    @contextmanager
    def _locked(self, what: str, kind: int, waiting: Waiting) -> Iterator[None]:
        file = _open(f"gpu-{self._name}.{what}")
        try:
            lock(file, kind, waiting)
            yield
        finally:
            os.close(file)

    @contextmanager
    def _held(self, kind: int, waiting: Waiting) -> Iterator[None]:
        gpu = _open(f"gpu-{self._name}")
        try:
            with self._locked("gate", fcntl.LOCK_EX, waiting):
                lock(gpu, kind, waiting)
            self._thread.has_gpu = True
            yield
        finally:
            self._thread.has_gpu = False
            os.close(gpu)


def _open(name: str) -> int:
    return os.open(locks.folder() / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def lock(file: int, kind: int, waiting: Waiting) -> None:
    """Wait for a lock on an open file, of a ``kind`` of ``flock``, and call ``waiting`` again and again."""
    while True:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            time.sleep(POLL_SECONDS)
        else:
            return
