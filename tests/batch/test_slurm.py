"""What a batch asks of Slurm, and what it says where it cannot."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grader.assignments.assignment import load
from grader.batch import slurm
from grader.batch.batch import BatchRequest, Shard
from grader.batch.slurm import Cluster
from grader.records.errors import MachineError
from grader.submissions.discovery import Entry


@pytest.fixture
def request_(tmp_path: Path) -> BatchRequest:
    (tmp_path / "in" / "a").mkdir(parents=True)
    return BatchRequest(tmp_path / "in", tmp_path / "out", load("llm_systems_3"))


def tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def test_a_task_grades_its_shard_on_a_gpu_with_the_options_of_the_batch(request_: BatchRequest) -> None:
    request = BatchRequest(
        Path("in"),
        Path("out"),
        request_.assignment,
        seed=7,
        since=datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC),
        only=("a", "b"),
        shard=Shard(),
    )
    line = slurm.command(request, Cluster(tasks=4, minutes=60), 3)
    assert line[:5] == [sys.executable, "-P", "-m", "grader", "batch"]
    assert line[5] == str(Path("in").resolve())
    words = " ".join(line[6:])
    for option in ("--shard 3/4", "--device gpu", "--seed 7", "--jobs 4", "--only a --only b"):
        assert option in words
    assert "--since 2026-03-04T05:06:07+00:00" in words
    assert f"--out {Path('out').resolve()}" in words


def test_a_task_that_ends_says_so_and_one_that_is_killed_does_not(tmp_path: Path) -> None:
    slurm.shard([sys.executable, "-c", "raise SystemExit(3)"], str(tmp_path / "ended"))
    assert (tmp_path / "ended").read_text() == "3\n"
    slurm.shard([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], str(tmp_path / "killed"))
    assert not (tmp_path / "killed").exists()


def test_without_slurm_it_says_where_to_run(request_: BatchRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MachineError, match="login node of the Slurm cluster"):
        slurm.run(request_, Cluster(tasks=2, minutes=60), lambda _step: None)


@pytest.mark.parametrize(
    ("squeue", "refused"),
    [("echo RUNNING", True), ("echo Invalid job id specified >&2; exit 1", False), ("exit 0", False)],
)
def test_an_array_that_still_runs_keeps_others_out(
    squeue: str, refused: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "squeue", squeue)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    running = tmp_path / ".slurm" / "array"
    running.parent.mkdir()
    running.write_text("12\n")
    if refused:
        with pytest.raises(MachineError, match="scancel 12"):
            slurm._refuse_two(running)
    else:
        slurm._refuse_two(running)


def test_each_record_that_a_task_writes_is_told_once(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    entries = [Entry(name, tmp_path) for name in ("a", "b")]
    telling = slurm._Telling(
        tmp_path / "out",
        entries,
        datetime(2026, 1, 1, tzinfo=UTC),
        lambda step: told.append((step.line, step.done)),
    )
    telling.tell("submitted")
    (tmp_path / "out" / "b").mkdir(parents=True)
    (tmp_path / "out" / "b" / "result.json").touch()
    telling.tell()
    telling.tell()
    assert told == [("submitted", 0), ("[1/2] b", 1), ("", 1), ("", 1)]


def test_a_controller_that_does_not_answer_has_not_ended_the_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(tmp_path, "squeue", "echo Unable to contact slurm controller >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert slurm.alive("12")
