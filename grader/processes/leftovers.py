"""Clean-up after a grader that was killed: the name of each temporary folder names the process that owns it.

Layer: imports nothing of the grader.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

_OWNER = re.compile(r"grader-(\d+-\d+-\d+)-")


@cache
def _of(pid: int) -> str:
    """A name that is unique among the processes of this machine."""
    namespace = os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    return f"{namespace}-{pid}-{_started(pid)}"


def _started(pid: int) -> str:
    """The start of process ``pid``, in ticks since the machine started; "" if there is no such process."""
    try:
        return (
            Path(f"/proc/{pid}/stat")
            .read_text(encoding="utf-8", errors="replace")
            .rpartition(")")[2]
            .split()[19]
        )
    except OSError:
        return ""


def owner() -> str:
    """The unique name of this process, for its temporary folders."""
    return _of(os.getpid())


def orphaned(name: str) -> bool:
    """Whether the owner called ``name`` has ended; False for one in another container, which is invisible."""
    namespace, pid, started = name.split("-")
    return namespace == owner().split("-")[0] and _started(int(pid)) != started


def prefix() -> str:
    """The prefix of the names of this process's temporary folders."""
    return f"grader-{owner()}-"


def sweep(folder: Path | None = None) -> None:
    """Remove the folders of graders that have ended from ``folder``, by default the temporary folder."""
    for path in orphans(folder or Path(tempfile.gettempdir())):
        remove(path)


def orphans(folder: Path) -> list[Path]:
    """The temporary folders in ``folder`` whose grader has ended."""
    owners = ((path, _OWNER.match(path.name)) for path in folder.glob("grader-*"))
    return [path for path, match in owners if match is not None and orphaned(match[1])]


def remove(folder: Path) -> None:
    """Remove a folder, which may contain folders without permissions."""
    for parent, folders, _ in os.walk(folder):
        for name in folders:
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
