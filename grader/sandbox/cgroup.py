"""Control groups: the kernel's limits on all processes of a job together, where groups can be created.

Versions 1 and 2 of the interface are supported. A job's group is below or beside the grader's own group, so
that a job uses only resources that the grader was given. Where no group can be created, the keeper samples.
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

PATIENCE_SECONDS = 5.0  # time-out for killed processes to end

_ROOT = Path("/sys/fs/cgroup")
_OWN = Path("/proc/self/cgroup")
_MEMORY = Path("/proc/meminfo")
_JOIN = 'for group; do echo 0 >"$group/cgroup.procs" || exit 1; done'


def parents(memberships: str, root: Path = _ROOT) -> tuple[Path, ...]:
    """The groups below which a job's groups can be created, one per hierarchy; empty if these limit nothing.

    Args:
        memberships: the content of ``/proc/self/cgroup``.
        root: the folder where the hierarchies are mounted.
    """
    groups_of = {line.split(":", 2)[1]: line.split(":", 2)[2].strip("/") for line in memberships.splitlines()}
    if (root / "cgroup.controllers").exists():
        group = root / groups_of.get("", "")
        # A group that contains processes cannot have limited groups below it.
        parent = group if group == root else group.parent
        with suppress(OSError):
            if {"memory", "pids"} <= set((parent / "cgroup.subtree_control").read_text().split()):
                return (parent,)
        return ()
    groups = tuple(root / name / groups_of[name] for name in ("memory", "pids") if name in groups_of)
    return groups if len(groups) == 2 and all(group.is_dir() for group in groups) else ()


def groups() -> tuple[Path, ...]:
    """The ``parents`` of the groups of this process."""
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
    """New groups whose processes together may use at most this much; empty if none can be created."""
    bounds = {"pids.max": processes}
    if memory_bytes is not None:
        bounds |= {"memory.max": memory_bytes, "memory.swap.max": 0}
        bounds |= {"memory.limit_in_bytes": memory_bytes, "memory.memsw.limit_in_bytes": memory_bytes}
    created: list[Path] = []
    try:
        for parent in groups():
            created.append(Path(tempfile.mkdtemp(prefix=leftovers.prefix(), dir=parent)))
            for name, bound in bounds.items():
                if (created[-1] / name).exists():  # it exists only in one version, and only with swap
                    (created[-1] / name).write_text(str(bound))
    except OSError:
        remove(created)
        return ()
    return tuple(created)


def free_bytes() -> int:
    """The memory in bytes that our processes can still get from this machine and within our groups."""
    memory = dict(line.split(":", 1) for line in _MEMORY.read_text().splitlines())
    free = [int(memory["MemAvailable"].split()[0]) << 10]
    with suppress(OSError):
        free += free_in_groups(_OWN.read_text())
    return min(free)


def free_in_groups(memberships: str, root: Path = _ROOT) -> list[int]:
    """The free bytes in each group that limits our memory; ``parents`` explains the arguments."""
    groups_of = {line.split(":", 2)[1]: line.split(":", 2)[2].strip("/") for line in memberships.splitlines()}
    if (root / "cgroup.controllers").exists():
        top, name, most, held = root, groups_of.get("", ""), "memory.max", "memory.current"
    else:
        top, name = root / "memory", groups_of.get("memory", "")
        most, held = "memory.limit_in_bytes", "memory.usage_in_bytes"
    lowest, free = top / name, []
    for group in (lowest, *lowest.parents):
        with suppress(OSError, ValueError):  # no such file, or "max"
            cached = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            files = int(cached.get("total_inactive_file") or cached["inactive_file"])  # reclaimed on demand
            used = int((group / held).read_text()) - files
            free.append(max(0, int((group / most).read_text()) - used))
        if group == top:
            break
    return free


def remove(groups: Iterable[Path]) -> None:
    """Remove those groups that have no processes left."""
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
    """Kill the processes in the groups of killed graders, whose keepers are dead too; remove the groups."""
    for parent in groups():
        clear(leftovers.orphans(parent))


def _kill(group: Path) -> bool:
    """Kill the processes of ``group``; return whether there were any."""
    pids: list[str] = []
    with suppress(OSError):
        pids = (group / "cgroup.procs").read_text().split()
    for pid in pids:
        with suppress(OSError):
            os.kill(int(pid), signal.SIGKILL)
    return bool(pids)
