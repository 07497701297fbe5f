"""A submission graded as a job of a Slurm that is played by three scripts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import forked
import pytest

from grader.batch import job, slurm
from grader.records import record as results

if TYPE_CHECKING:
    from collections.abc import Mapping

GRADER = [sys.executable, "-P", "-m", "grader", "grade"]
SBATCH = """
for option; do case "$option" in --output=*) log="${option#--output=}";; esac; command="$option"; done
echo "$@" >"$PLAYED/asked"
setsid sh -c "$command" >"$log" 2>&1 & echo $! | tee "$PLAYED/job"
"""
SQUEUE = """
case "$*" in *PENDING*) echo 7; echo 8; cat "$PLAYED/job"; exit;; esac
running=$(cat "$PLAYED/job"); kill -0 "$running" 2>/dev/null || exit 0
case "$*" in *%P*) echo "${STATE:-RUNNING} gpu";; *) echo "${STATE:-RUNNING}";; esac
"""
SCANCEL = """
echo "$1" >"$PLAYED/cancelled"; kill -- "-$1"
"""


@pytest.fixture
def cluster(tmp_path: Path) -> dict[str, str]:
    """The environment of a login node; what was asked of Slurm lies in its folder."""
    played = tmp_path / "slurm"
    played.mkdir()
    for name, script in (("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL)):
        (played / name).write_text(f"#!/bin/bash{script}")
        (played / name).chmod(0o755)
    (tmp_path / "hw").mkdir()
    (tmp_path / "hw" / "softmax_kernels.cu").write_text("")
    return {"PATH": f"{played}:{os.environ['PATH']}", "PLAYED": str(played)}


def grade(folder: Path, cluster: Mapping[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    words = ("grade", "hw", "--device", "sim", "--seed", "3", *options)
    return forked.run(*words, environment={"GITHUB_ACTIONS": "", **cluster}, folder=folder)


def test_a_job_shows_what_a_grading_here_shows(tmp_path: Path, cluster: dict[str, str]) -> None:
    asked = ("--slurm", "--partition", "gpu", "--slurm-option", "cpus-per-task=2", "--time", "9")
    there = grade(tmp_path, cluster, *asked, "--json", "there.json")
    here = grade(tmp_path, cluster, "--json", "here.json")
    assert (there.returncode, there.stdout) == (here.returncode, here.stdout), there.stderr
    first, second = (results.read(tmp_path / f"{name}.json") for name in ("there", "here"))
    assert first.problems == second.problems
    options = (tmp_path / "slurm" / "asked").read_text()
    for option in ("--partition=gpu", "--cpus-per-task=2", "--time=9", "--no-requeue"):
        assert option in options
    assert "gpus" not in options, "the simulator needs none"
    assert not list(tmp_path.glob(".slurm-*"))


def test_an_interrupt_cancels_the_job(tmp_path: Path, cluster: dict[str, str]) -> None:
    played = tmp_path / "slurm"
    sleeping = (played / "sbatch").read_text().replace('sh -c "$command"', "sleep 600")
    (played / "sbatch").write_text(sleeping)
    command = [*GRADER, "hw", "--device", "sim", "--slurm"]
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, **cluster}) as process:
        begun = time.monotonic()
        while not (played / "job").exists() and process.poll() is None:
            assert time.monotonic() < begun + 120
            time.sleep(0.1)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    assert (played / "cancelled").read_text() == (played / "job").read_text()
    assert not list(tmp_path.glob(".slurm-*"))


def test_a_job_that_leaves_no_record_is_the_fault_of_the_machine_with_its_last_words(
    tmp_path: Path, cluster: dict[str, str]
) -> None:
    broken = tmp_path / "slurm" / "sbatch"
    broken.write_text(broken.read_text().replace('sh -c "$command"', "echo node on fire"))
    done = grade(tmp_path, cluster, "--slurm")
    assert done.returncode == 3
    assert "left no record. Its last words:\nnode on fire" in done.stderr


def test_the_place_in_the_queue_is_told(cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**cluster, "STATE": "PENDING"}.items():
        monkeypatch.setenv(name, value)
    Path(cluster["PLAYED"], "job").write_text(f"{os.getpid()}\n")
    assert slurm.alive(str(os.getpid()))
    assert job._state(str(os.getpid())) == "waits, 2 before it"
    monkeypatch.setenv("STATE", "RUNNING")
    assert job._state(str(os.getpid())) == "runs"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--partition", "gpu"), "--partition does nothing without --slurm"),
        (("--slurm", "--watch"), "--watch does nothing with --slurm"),
        (("--slurm",), "There is no sbatch here. Run this on a login node"),
    ],
)
def test_what_cannot_be_a_job_says_why(
    options: tuple[str, ...], said: str, tmp_path: Path, cluster: dict[str, str]
) -> None:
    done = grade(tmp_path, {**cluster, "PATH": "/nowhere"}, *options)
    assert done.returncode in {2, 3}
    assert said in done.stderr
