"""A submission that is graded with a process for each of its problems."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ending_worker import judged_at_once

from grader.assignments.assignment import load
from grader.batch import apart
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from grader.records.record import Record
    from grader.run.bench import Machine

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"
NAMES = ("reduce_sum", "vector_add")
WORKER = Path(__file__).parent / "ending_worker.py"


class WithGpu(Bench):
    """Finds a GPU, although the simulator runs what is graded."""

    def machine(self, *wanted: Any, again: bool = False) -> Machine:  # noqa: ANN401
        return replace(super().machine(*wanted, again=again), gpu=object())


def request(*names: str, device: str = "sim") -> grading.GradingRequest:
    assignment = load("first_kernels")
    return grading.GradingRequest(assignment.reference, assignment, names, GradingOptions(device), 5)


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grading.ProblemJudge, "check", judged_at_once)
    monkeypatch.setattr(apart, "Bench", WithGpu)


def without_times(record: Record) -> dict[str, Any]:
    return record.model_dump(exclude={"started", "seconds"})


@pytest.mark.usefixtures("with_gpu")
def test_the_record_is_that_of_one_process_also_where_another_has_ended(tmp_path: Path) -> None:
    told: list[str] = []
    command = (sys.executable, str(WORKER), str(tmp_path / "met"), "dies")
    record = apart.grade(request(*NAMES), told.append, command)
    assert without_times(record) == without_times(grading.grade(request(*NAMES)))
    assert sum(text.endswith("its process ended, trying again") for text in told) == 1


@pytest.mark.usefixtures("with_gpu")
def test_an_interrupt_keeps_what_was_decided(tmp_path: Path) -> None:
    met = tmp_path / "met"
    command = (sys.executable, str(WORKER), str(met), "hangs")

    def interrupt() -> None:
        while not met.exists():
            ended.wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    ended = threading.Event()
    threading.Thread(target=interrupt, daemon=True).start()
    record = apart.grade(request(*NAMES), lambda _text: None, command)
    assert (record.error, record.exit_code) == ("interrupted", 130)
    assert [problem.verdict.value for problem in record.problems] == ["FAIL", "INFRA_ERROR"]
    assert record.submission.files == ["reduce_sum.cu", "vector_add.cu"]


def test_without_a_gpu_one_process_grades_all(monkeypatch: pytest.MonkeyPatch) -> None:
    graded: list[tuple[str, ...]] = []
    monkeypatch.setattr(grading, "grade", lambda asked, _told: graded.append(asked.problems))
    apart.grade(request(*NAMES), lambda _text: None, ("false",))
    assert graded == [NAMES]


@pytest.mark.parametrize(
    ("asked", "does"),
    [
        (request(*NAMES, device="auto"), True),
        (request(*NAMES, device="gpu"), True),
        (request(*NAMES), False),
        (request("vector_add", device="gpu"), False),
        (replace(request(*NAMES, device="gpu"), fast=True), False),
        (replace(request(*NAMES), options=GradingOptions("gpu", precise=True)), False),
    ],
)
def test_several_problems_suit_where_there_are_processors_and_a_gpu(
    asked: grading.GradingRequest, does: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart.os, "sched_getaffinity", lambda _process: range(16))
    monkeypatch.setattr(apart.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert apart.suits(asked) is does
    monkeypatch.setattr(apart.os, "sched_getaffinity", lambda _process: range(2))
    assert not apart.suits(asked)
