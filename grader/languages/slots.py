"""The queue of all compilations of one user on this machine.

As many run at once as processors and memory carry; one more, and the kernel might end one for want of memory.
A slot is a lock on a file, which the kernel gives back when its holder ends, however it ends.
"""

from __future__ import annotations

import fcntl
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grader.processes import locks
from grader.sandbox.cgroup import free_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BYTES_EACH = 2 << 30  # what nvcc takes for a large file, with some room
_POLL_SECONDS = 0.1


class SlotError(Exception):
    """There is no slot; the message says why."""


def count() -> int:
    """How many compiles this machine carries now, beside what runs already."""
    return max(1, min(len(os.sched_getaffinity(0)), free_bytes() // _BYTES_EACH))


@contextmanager
def slot(given_up: threading.Event | None = None) -> Iterator[None]:
    """Hold one of the slots, and wait for it as long as it takes.

    Args:
        given_up: set by another thread to end the wait, and here by an error while the slot is held.

    Raises:
        SlotError: ``given_up`` was set, or the folder of the slots is not ours.
    """
    given_up = given_up or threading.Event()
    try:
        folder = locks.folder()
    except locks.LocksError as error:
        raise SlotError(str(error)) from error
    held = None
    while held is None:
        held = _taken(folder)
        if given_up.is_set():  # asked with the slot in hand: who fails sets it before the slot is free
            if held is not None:
                os.close(held)
            raise SlotError("interrupted while it waited for other compiles")
        if held is None:
            given_up.wait(_POLL_SECONDS)
    failed = True
    try:
        yield
        failed = False
    finally:
        if failed:
            given_up.set()  # before the slot is free: none of those who wait is to take it
        os.close(held)


def _taken(folder: Path) -> int | None:
    """A locked file of ``folder``; None if all are taken."""
    for number in range(count()):
        file = os.open(folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
        else:
            return file
    return None
