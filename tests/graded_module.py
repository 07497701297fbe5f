"""Answers to the assignment ``tensor_functions``, graded on the simulator with two cases each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.assignment import Assignment, load
from grader.problems.module import ModuleProblem
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    import pytest

    from grader.problems.module import Operators
    from grader.problems.problem import Case, Problem
    from grader.records.record import ProblemResult

ASSIGNMENT = load(str(Path(__file__).parents[1] / "assignments" / "tensor_functions"))
RETURNS, FILLS = "row_softmax", "shifted_sum"


def few(problem: Problem, most: int = 2) -> tuple[Case, ...]:
    """The smallest case and a larger one, as compiling takes its time."""
    cases = sorted(problem.cases(1), key=lambda case: max(case.sizes.values()))
    return (cases[0], *(case for case in cases if max(case.sizes.values()) > 64))[:most]


def graded(
    folder: Path,
    name: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    operators: Operators | None = None,
    *,
    one_case: bool = False,
    initial: int | None = None,
) -> ProblemResult:
    """The result of the file ``text``; with ``one_case`` of the larger case alone, until that fails.

    With ``initial``, a class is asked for, whose objects are made with so many of the arguments.
    """
    problem = ASSIGNMENT.problems[name]
    assert isinstance(problem, ModuleProblem)
    chosen = replace(
        problem,
        cases=lambda _: few(problem)[one_case:],
        space=None,
        torch_operators=operators or problem.torch_operators,
        initial=initial,
    )
    monkeypatch.setattr(Assignment, "problems", property(lambda _: {name: chosen}))
    (folder / problem.file).write_text(text)
    request = grading.GradingRequest(
        folder, replace(ASSIGNMENT), (name,), GradingOptions("sim", "process"), 1, fast=one_case
    )
    record = grading.grade(request, bench=Bench())
    assert record.error is None
    (result,) = record.problems
    return result


def edited(name: str, *edits: tuple[str, str], language: str = "triton") -> str:
    text = (ASSIGNMENT.reference_in(language) / f"{name}.py").read_text()
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text
