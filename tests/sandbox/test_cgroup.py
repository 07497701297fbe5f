"""Where control groups are made, and that they are bounded and removed."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from grader.processes import leftovers
from grader.sandbox import cgroup

if TYPE_CHECKING:
    from pathlib import Path

HYBRID = "4:memory:/batch/job_7\n3:cpu,cpuacct:/\n1:pids:/batch\n0::/\n"


@pytest.fixture
def made() -> tuple[Path, ...]:
    if not cgroup.available():
        pytest.skip("no control groups can be made here")
    return cgroup.make(64 << 20, 7)


def test_groups_of_version_1_lie_below_our_own(tmp_path: Path) -> None:
    assert cgroup.parents(HYBRID, tmp_path) == ()
    places = (tmp_path / "memory/batch/job_7", tmp_path / "pids/batch")
    for place in places:
        place.mkdir(parents=True)
    assert cgroup.parents(HYBRID, tmp_path) == places
    assert cgroup.parents("3:cpu,cpuacct:/\n", tmp_path) == ()


@pytest.mark.parametrize(("own", "place"), [("user/app/shell.scope", "user/app"), ("", "")])
def test_groups_of_version_2_lie_beside_our_own(own: str, place: str, tmp_path: Path) -> None:
    (tmp_path / own).mkdir(parents=True, exist_ok=True)
    (tmp_path / "cgroup.controllers").touch()
    assert cgroup.parents(f"0::/{own}\n", tmp_path) == ()
    given = tmp_path / place / "cgroup.subtree_control"
    given.write_text("cpu memory\n")
    assert cgroup.parents(f"0::/{own}\n", tmp_path) == ()
    given.write_text("cpu memory pids\n")
    assert cgroup.parents(f"0::/{own}\n", tmp_path) == (tmp_path / place,)


def test_groups_are_bounded_and_removed(made: tuple[Path, ...]) -> None:
    bounds = {path.name: path.read_text().strip() for group in made for path in group.glob("*.max")}
    bounds |= {
        path.name: path.read_text().strip() for group in made for path in group.glob("*.limit_in_bytes")
    }
    assert bounds["pids.max"] == "7"
    assert str(64 << 20) in {bounds.get("memory.max"), bounds.get("memory.limit_in_bytes")}
    cgroup.remove(made)
    assert not any(group.exists() for group in made)


def test_what_a_killed_grader_left_is_swept(made: tuple[Path, ...]) -> None:
    gone = subprocess.Popen(["/bin/true"])
    owner = leftovers.owner().replace(f"-{os.getpid()}-", f"-{gone.pid}-")
    gone.wait()
    left = [group.with_name(f"grader-{owner}-x") for group in made]
    lasting = subprocess.Popen(["/bin/sleep", "600"])
    for group in left:
        group.mkdir()
        (group / "cgroup.procs").write_text(str(lasting.pid))
    cgroup.remove(made)
    cgroup.sweep()
    assert lasting.wait(20) == -signal.SIGKILL
    assert not any(group.exists() for group in left)


@pytest.mark.parametrize(
    ("own", "top", "names"),
    [
        ("0::/user/app\n", "", ("memory.max", "memory.current", "inactive_file")),
        (
            "4:memory:/user/app\n",
            "memory",
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ),
    ],
)
def test_free_memory_is_what_every_group_has_left(
    own: str, top: str, names: tuple[str, str, str], tmp_path: Path
) -> None:
    most, held, files = names
    if not top:
        (tmp_path / "cgroup.controllers").touch()
    for group, content in {
        "user": ("9000", "5000"),
        "user/app": ("max", "4000"),
        "": ("7000", "8000"),
    }.items():
        place = tmp_path / top / group
        place.mkdir(parents=True, exist_ok=True)
        for name, text in zip((most, held), content, strict=True):
            (place / name).write_text(text)
        (place / "memory.stat").write_text(f"{files} 500\n")
    assert cgroup.free_in_groups(own, tmp_path) == [4500, 0]


def test_free_memory_is_that_of_the_machine() -> None:
    assert 0 < cgroup.free_bytes() < 1 << 50
