"""Problems of an imported assignment, and answers to them, graded on the simulator until a case fails."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from grader.problems.module import ModuleProblem
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.records.record import Record


def problem(assignment: Assignment, name: str) -> ModuleProblem:
    chosen = assignment.problems[name]
    assert isinstance(chosen, ModuleProblem)
    return chosen


def graded(assignment: Assignment, folder: Path, name: str, text: str) -> Record:
    """The record of the file ``text``, which is skipped if it is in Triton and that is not installed."""
    if "triton" in text:
        pytest.importorskip("triton", reason="needs Triton: pip install 'kernel-grader[triton]'")
    (folder / f"{name}.py").write_text(text)
    request = grading.GradingRequest(
        folder, replace(assignment), (name,), GradingOptions("sim", "process"), seed=1, fast=True
    )
    return grading.grade(request, bench=Bench())
