"""The folder of the locks by which the graders of one user take turns on a machine."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

from grader.records.errors import MachineError


class LocksError(MachineError):
    """There can be no locks; the message says why."""


def folder() -> Path:
    """The folder, which belongs to the user alone: other users could hold the locks.

    Raises:
        LocksError: it cannot be made, or belongs to somebody else.
    """
    path = Path(tempfile.gettempdir(), f"kernel-grader-{os.getuid()}")
    try:
        path.mkdir(mode=0o700, exist_ok=True)
        status = path.lstat()
    except OSError as error:
        raise LocksError(f"cannot make {path}: {error.strerror}") from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise LocksError(f"{path} is not a folder of yours alone: remove it, or set TMPDIR")
    return path
