"""The reference on the simulator, on all cases."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from grader.assignments.assignment import load
from grader.records.findings import KINDS
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.judging import ProblemJudge
from grader.run.kinds import kind_of
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from grader.assignments.rules import ProblemPoints
    from grader.problems.problem import Problem

REFERENCE = Path(__file__).parents[2] / "reference"
FOUR = ("softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward")


def test_the_reference_gets_full_marks_of_what_a_simulator_can_decide() -> None:
    assignment = load("llm_systems_3")
    names = tuple(problem.id for problem in assignment.rules.problems)
    said: list[str] = []
    record = grading.grade(
        grading.GradingRequest(REFERENCE, assignment, names, GradingOptions("sim"), seed=1), said.append
    )
    problems = {problem.id: problem for problem in record.problems}
    assert (record.score.earned, record.score.decided, record.score.possible) == (60, 60, 100)
    assert record.exit_code == 0
    assert {problems[name].verdict for name in FOUR} == {Verdict.PASS}
    findings = [finding for name in FOUR for check in problems[name].checks for finding in check.findings]
    assert [finding.kind for finding in findings if KINDS[finding.kind].costs] == []
    assert {problems[name].performance.verdict for name in FOUR} == {Verdict.NOT_MEASURED}
    assert problems["transformer"].verdict is Verdict.PASS
    tried = [text for text in said if "with device pointers" in text]
    assert len(set(tried)) == len(tried) == len(FOUR)  # which the transformer calls, too
    build = problems["softmax_forward"].build
    assert build is not None
    assert any(
        kernel.kernel.startswith("ker_attn_softmax") and kernel.registers for kernel in build.resources
    )


def test_the_reference_is_right_where_the_memory_bus_is_wide_too(tmp_path: Path) -> None:
    for path in REFERENCE.glob("*.cu*"):
        (tmp_path / path.name).write_text(path.read_text())
    header = tmp_path / "row.cuh"
    assert header.read_text().count("return bits > H100_BITS;") == 1  # the simulated GPU's bus is narrow
    header.write_text(header.read_text().replace("return bits > H100_BITS;", "return true;"))
    wide = ("softmax_forward", "softmax_backward", "layernorm_forward")
    request = grading.GradingRequest(tmp_path, load("llm_systems_3"), wide, GradingOptions("sim"), seed=1)
    problems = grading.grade(request, lambda _: None).problems
    assert [(problem.id, problem.verdict) for problem in problems] == [(name, Verdict.PASS) for name in wide]
    assert [finding for one in problems for check in one.checks for finding in check.findings] == []


def test_a_model_begins_before_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []

    class Judge(ProblemJudge):
        def __init__(self, _material: object, entry: ProblemPoints, problem: Problem) -> None:
            self.id, self.kind = entry.id, kind_of(problem)
            self.machine_failed = False

        def check(self) -> Callable[[], Any]:
            begun.append(self.id)
            return lambda: self.id

    monkeypatch.setattr(grading, "ProblemJudge", Judge)
    bench = SimpleNamespace(problems_at_once=1, measured_at_once=1, pytorch=None)
    request = SimpleNamespace(profile=False, precise=False, seed=1, turn=0)
    run: Any = SimpleNamespace(bench=bench, problems={}, request=request)
    machine: Any = SimpleNamespace(gpu=None)
    answers: Any = [
        SimpleNamespace(entry=SimpleNamespace(id=name), problem=problem)
        for name, problem in load("llm_systems_3").problems.items()
    ]
    materials: Any = [None] * len(answers)
    grading._judge_all(run, machine, answers, materials)
    assert begun == ["transformer", *FOUR]
    assert run.problems.keys() == {*FOUR, "transformer"}
