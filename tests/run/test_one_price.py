"""A defect that leaves the numbers right costs the same on the simulator and on a GPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from run.one_finding import DEFECTS, PROBLEM

from grader.assignments.assignment import Assignment, load
from grader.problems.problem import MEMORY_GROUP
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path

    from run.one_finding import Defect

    from grader.problems.problem import Case
    from grader.records.record import ProblemResult

WHOLE = load("llm_systems_3").problems[PROBLEM]


@cache
def remembering() -> Bench:
    return Bench(remembers=True)


def usual_cases(seed: int) -> tuple[Case, ...]:
    """Those that run under every order: a million rows take most of the time, and show no other defect."""
    return tuple(case for case in WHOLE.cases(seed) if case.orders is None)


@pytest.fixture(autouse=True)
def usual_cases_untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points for speed are another matter, and take minutes."""
    groups = tuple(dict.fromkeys(case.group for case in usual_cases(1)))
    part = replace(WHOLE, cases=usual_cases, groups=groups, timing_cases=lambda _seed: ())
    monkeypatch.setattr(Assignment, "problems", property(lambda _: {PROBLEM: part}))


def grade(path: Path, device: str) -> ProblemResult:
    request = grading.GradingRequest(path, load("llm_systems_3"), (PROBLEM,), GradingOptions(device), seed=1)
    return grading.grade(request, bench=remembering() if device == "sim" else None).problems[0]


def lost(result: ProblemResult) -> set[str]:
    """The groups without their points."""
    return {group.name for group in result.correctness.groups if group.verdict is not Verdict.PASS}


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.id)
def test_a_defect_costs_its_group_alone(defect: Defect, tmp_path: Path, ptx_only: None) -> None:  # noqa: ARG001
    result = grade(defect.write(tmp_path / "hw"), "sim")
    kinds = {finding.kind for check in result.checks for finding in check.findings}
    assert kinds == {defect.kind}
    everything = {group.name for group in result.correctness.groups}
    assert lost(result) == (everything if defect.ends else {MEMORY_GROUP} if defect.costs else set())


@pytest.mark.gpu
@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.id)
def test_a_defect_costs_the_same_on_a_gpu(defect: Defect, tmp_path: Path) -> None:
    path = defect.write(tmp_path / "hw")
    assert lost(grade(path, "gpu")) == lost(grade(path, "sim"))
