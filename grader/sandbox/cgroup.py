"""Control groups: the kernel's limits on all processes of a job together, where they can be created.

Both versions of the interface are known. A group lies below our own or beside it, so that a job takes nothing
that was not given to us. Where none can be made, the keeper samples.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from grader.processes import leftovers

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

PATIENCE_SECONDS = 5.0  # for what is killed to go

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_MEMORY = Path("/proc/meminfo")
_JOIN = 'for group; do echo 0 >"$group/cgroup.procs" || exit 1; done'


def parents(own: str, root: Path = _ROOT) -> tuple[Path, ...]:
    """The groups in which ours can be made, one per hierarchy; empty unless they bound memory and processes.

    Args:
        own: the content of ``/proc/self/cgroup``.
        root: where the hierarchies are mounted.
    """
    ours = {line.split(":", 2)[1]: line.split(":", 2)[2].strip("/") for line in own.splitlines()}
    if (root / "cgroup.controllers").exists():
        mine = root / ours.get("", "")
        place = (
            mine if mine == root else mine.parent
        )  # one that holds processes cannot have bounded ones below
        with suppress(OSError):
            if {"memory", "pids"} <= set((place / "cgroup.subtree_control").read_text().split()):
                return (place,)
        return ()
    found = tuple(root / name / ours[name] for name in ("memory", "pids") if name in ours)
    return found if len(found) == 2 and all(place.is_dir() for place in found) else ()


def places() -> tuple[Path, ...]:
    """The ``parents`` on this machine."""
    with suppress(OSError):
        return parents(_OWN.read_text())
    return ()


@cache
def available() -> bool:
    """Whether control groups can be created here and processes can be moved into them."""
    groups = make(None, 16)
    if not groups:
        return False
    joined = subprocess.run(["/bin/sh", "-c", _JOIN, "join", *groups], capture_output=True, check=False)
    remove(groups)
    return joined.returncode == 0


def make(memory_bytes: int | None, processes: int) -> tuple[Path, ...]:
    """New groups whose processes hold at most that much together; empty if none can be made."""
    bounds = {"pids.max": processes}
    if memory_bytes is not None:
        bounds |= {"memory.max": memory_bytes, "memory.swap.max": 0}
        bounds |= {"memory.limit_in_bytes": memory_bytes, "memory.memsw.limit_in_bytes": memory_bytes}
    made: list[Path] = []
    try:
        for parent in places():
            made.append(Path(tempfile.mkdtemp(prefix=leftovers.prefix(), dir=parent)))
            for name, bound in bounds.items():
                if (made[-1] / name).exists():  # of the other version, or without swap, it does not
                    (made[-1] / name).write_text(str(bound))
    except OSError:
        remove(made)
        return ()
    return tuple(made)


def free_bytes() -> int:
    """The memory that processes of ours can still get, of this machine and within our groups."""
    told = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
    free = [int(told["MemAvailable"].split()[0]) << 10]
    with suppress(OSError):
        free += free_in_groups(_OWN.read_text())
    return min(free)


def free_in_groups(own: str, root: Path = _ROOT) -> list[int]:
    """What each group that bounds our memory has left, in bytes; for the arguments see ``parents``."""
    ours = {line.split(":", 2)[1]: line.split(":", 2)[2].strip("/") for line in own.splitlines()}
    if (root / "cgroup.controllers").exists():
        top, name, most, held = root, ours.get("", ""), "memory.max", "memory.current"
    else:
        top, name = root / "memory", ours.get("memory", "")
        most, held = "memory.limit_in_bytes", "memory.usage_in_bytes"
    place, free = top / name, []
    for group in (place, *place.parents):
        with suppress(OSError, ValueError):  # not there, or "max"
            cached = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            files = int(cached.get("total_inactive_file") or cached["inactive_file"])  # given up on demand
            used = int((group / held).read_text()) - files
            free.append(max(0, int((group / most).read_text()) - used))
        if group == top:
            break
    return free


def remove(groups: Iterable[Path]) -> None:
    """Remove groups without processes; one that still has some stays."""
    for group in groups:
        with suppress(OSError):
            group.rmdir()


def clear(groups: Collection[Path]) -> None:
    """Remove groups, and kill the processes that are left in them: their keeper did not end them."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while sum(_kill(group) for group in groups) and time.monotonic() < deadline:
        time.sleep(0.001)
    remove(groups)


def sweep() -> None:
    """Remove the groups of graders that were killed."""
    for parent in places():
        clear(leftovers.orphans(parent))


def _kill(group: Path) -> bool:
    """Kill the processes of ``group``; whether there were any."""
    pids: list[str] = []
    with suppress(OSError):
        pids = (group / "cgroup.procs").read_text().split()
    for pid in pids:
        with suppress(OSError):
            os.kill(int(pid), signal.SIGKILL)
    return bool(pids)
