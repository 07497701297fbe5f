"""The processes that grade, one for each submission, so that none can harm another or the batch."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

GRACE_SECONDS = 10.0  # for a terminated process to end its sandboxes
GRADE = (sys.executable, "-m", "grader", "grade")


class StoppedError(Exception):
    """The batch was interrupted: nothing is started any more."""


class Children:
    """Starts processes from any thread and ends them all at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], said: Path) -> int:
        """Run ``command`` to its end and return its exit code; ``said`` receives its stderr.

        It has a process group of its own: Ctrl-C reaches the batch alone, which tells each process once.

        Raises:
            StoppedError: ``stop`` was called.
            OSError: it cannot be started.
        """
        with said.open("wb") as stderr, self._lock:
            if self._stopped:
                raise StoppedError
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=os.environ | _same_imports(),
                process_group=0,
            )
            self._running.add(child)
        try:
            return child.wait()
        finally:
            with self._lock:
                self._running.discard(child)

    def stop(self) -> None:
        """Terminate what runs, kill what is still there after a while, and start nothing more."""
        with self._lock:
            self._stopped = True
            running = tuple(self._running)
        try:
            for child in running:
                child.terminate()  # a shell's background jobs ignore SIGINT, and so would their children
            for child in running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(GRACE_SECONDS)
        finally:
            for child in running:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)


def _same_imports() -> dict[str, str]:
    """The environment in which a process imports what this one does, whatever its working folder holds."""
    places = (place or os.getcwd() for place in sys.path)  # noqa: PTH109 - a string among strings
    return {"PYTHONPATH": os.pathsep.join(places), "PYTHONSAFEPATH": "1"}
