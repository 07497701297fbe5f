"""The reference on the simulator, on all cases."""

from __future__ import annotations

from pathlib import Path

from grader.assignments.assignment import load
from grader.records.findings import ONLY_REPORTED
from grader.records.verdict import Verdict
from grader.run import grading

REFERENCE = Path(__file__).parents[2] / "reference"
FOUR = ("softmax_forward", "softmax_backward", "layernorm_forward", "layernorm_backward")


def test_the_reference_gets_full_marks_of_what_a_simulator_can_decide() -> None:
    assignment = load("llm_systems_3")
    names = tuple(problem.id for problem in assignment.rules.problems)
    record = grading.grade(
        grading.GradingRequest(REFERENCE, assignment, names, "sim", "auto", "auto", seed=1)
    )
    problems = {problem.id: problem for problem in record.problems}
    assert (record.score.earned, record.score.decided, record.score.possible) == (60, 60, 100)
    assert record.exit_code == 0
    assert {problems[name].verdict for name in FOUR} == {Verdict.PASS}
    findings = [finding for name in FOUR for check in problems[name].checks for finding in check.findings]
    assert [finding.kind for finding in findings if finding.kind not in ONLY_REPORTED] == []
    assert {problems[name].performance.verdict for name in FOUR} == {Verdict.NOT_MEASURED}
    assert problems["transformer"].verdict is Verdict.PASS
    build = problems["softmax_forward"].build
    assert build is not None
    assert any(
        kernel.kernel.startswith("ker_attn_softmax") and kernel.registers for kernel in build.resources
    )
