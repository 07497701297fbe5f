"""Who uses a GPU at a time: what is timed has it alone, and everything else shares it.

This holds for all processes of a user on a machine: two gradings at once, the workers of a batch, the tasks
of a cluster on one node. The lock is one of readers and writers, made of files, four per GPU, that the kernel
unlocks when their holder ends, however it ends. ``flock`` is used directly, because the locks of the library
``filelock`` cannot be shared in this way. Whoever wants to have the GPU alone *claims* it, and then waits for
a *turn*. As long as anybody claims it, nobody else comes in to share it.

Those who claim it cannot keep the others out for ever, who use it a hundred times for some milliseconds:
every ``ALONE_SECONDS`` who has the turn lets those in who *want* to share it, until none is left, for
``SHARED_SECONDS`` at most. What several of them have to do is then done side by side, and the GPU is not
passed to and fro between each two that have it alone.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
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
ALONE_SECONDS = 1.5
SHARED_SECONDS = 0.3
_MOMENT = struct.Struct("d")  # by the clock that all processes of a machine share
WAITING = "waiting for the GPU, which another grading has"


def _patient() -> None:
    """Wait however long it takes."""


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
        with (
            self._locked("claim", fcntl.LOCK_SH, waiting),
            self._locked("turn", fcntl.LOCK_EX, waiting) as turn,
        ):
            self._let_in(turn, waiting)
            with self._locked("", fcntl.LOCK_EX, waiting), self._having():
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
            with (
                self._locked("wanted", fcntl.LOCK_SH, waiting),
                self._opened("turn") as turn,
                self._opened("") as gpu,
            ):
                while not (self._may_enter(turn) and taken(gpu, fcntl.LOCK_SH)):
                    waiting()
                    time.sleep(POLL_SECONDS)
                with self._having():
                    yield

    def _let_in(self, turn: int, waiting: Waiting) -> None:
        """Let those in who want to share the GPU, if none were for long; ``turn`` holds until when."""
        now = time.monotonic()
        if 0 <= now - _moment(turn) < ALONE_SECONDS:
            return
        _set_moment(turn, now + SHARED_SECONDS)
        while self._wanted() and time.monotonic() < now + SHARED_SECONDS:
            waiting()
            time.sleep(POLL_SECONDS)
        _set_moment(turn, time.monotonic())

    def _may_enter(self, turn: int) -> bool:
        """Whether those who share the GPU may come in now."""
        return 0 < _moment(turn) - time.monotonic() <= SHARED_SECONDS or self._unclaimed()

    def _wanted(self) -> bool:
        """Whether somebody shares the GPU, or waits for that."""
        with self._opened("wanted") as file:
            return not taken(file, fcntl.LOCK_EX)

    def _unclaimed(self) -> bool:
        """Whether nobody has the GPU alone or waits for that."""
        with self._opened("claim") as file:
            return taken(file, fcntl.LOCK_EX)

    @contextmanager
    def _locked(self, name: str, kind: int, waiting: Waiting) -> Iterator[int]:
        with self._opened(name) as file:
            lock(file, kind, waiting)
            yield file

    @contextmanager
    def _opened(self, name: str) -> Iterator[int]:
        """The file called ``name``, whose lock ends with this; that of the GPU itself has no name."""
        path = locks.folder() / f"gpu-{self._name}{name and '.'}{name}"
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            yield file
        finally:
            os.close(file)

    @contextmanager
    def _having(self) -> Iterator[None]:
        self._thread.has_gpu = True
        try:
            yield
        finally:
            self._thread.has_gpu = False


def _moment(file: int) -> float:
    """The moment that a file holds; that of the machine's start if it holds none."""
    held = os.pread(file, _MOMENT.size, 0)
    return float(_MOMENT.unpack(held)[0]) if held else 0.0


def _set_moment(file: int, moment: float) -> None:
    os.pwrite(file, _MOMENT.pack(moment), 0)


def taken(file: int, kind: int) -> bool:
    """Whether a lock on an open file could be taken at once."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock(file: int, kind: int, waiting: Waiting) -> None:
    """Wait for a lock on an open file, of a ``kind`` of ``flock``, and call ``waiting`` again and again."""
    while not taken(file, kind):
        waiting()
        time.sleep(POLL_SECONDS)
