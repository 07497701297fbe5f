"""Checks of program problems: the example that comes with the grader is sound, and what is not is named."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from grader.assignments.assignment import EXAMPLE_PROGRAM, read
from grader.assignments.rules import AssignmentError
from grader.records.record import (
    BuildResult,
    CorrectnessResult,
    PerformanceResult,
    Points,
    ProblemResult,
    TrustResult,
)
from grader.records.verdict import Verdict
from grader.soundness.check import check
from grader.soundness.killers import Status
from grader.soundness.mutate import Plan, mutate
from grader.soundness.programs import program_rows

if TYPE_CHECKING:
    from pathlib import Path

    from grader.assignments.assignment import Assignment

NAME = "vector_add"


def copy(folder: Path) -> Assignment:
    shutil.copytree(EXAMPLE_PROGRAM, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return read(folder)


@pytest.mark.usefixtures("ptx_only")
def test_the_example_is_complete_and_sound(tmp_path: Path) -> None:
    rows = list(check(copy(tmp_path / "own"), [NAME], seeds=1, device="sim"))
    assert [row for row in rows if row.sound is False] == []
    shown = {row.title: row.text for row in rows}
    assert shown[f"variants of {NAME}"] == "1 pass"
    assert shown[f"mutants of {NAME}"] == "3 fail"
    assert shown[f"content of {NAME}"].startswith("all 6 cases are the same each time")
    assert "the program did not write c.txt" in shown[f"template: {NAME}"]


@pytest.mark.usefixtures("ptx_only")
def test_automatic_mutants_of_a_program_are_built_and_judged_one_by_one(tmp_path: Path) -> None:
    plan = Plan(only=("cu:8 `<`", "cu:8 `+`", "cu:8 `a", "cu:32 `1`"), file=tmp_path / "kept.json")
    judgements = {one.mutant.title: one for one in mutate(copy(tmp_path / "own"), plan)}
    statuses = {title.partition(":")[2]: one.status for title, one in judgements.items()}
    assert statuses.pop("32 `1` becomes `2`") is Status.SURVIVED  # of a usage that no case is wrong in
    assert len(statuses) >= 3
    assert set(statuses.values()) == {Status.KILLED}
    again = mutate(copy(tmp_path / "other"), replace(plan, seconds=0.0))
    kept = [one.status for one in again]
    assert kept.count(Status.KILLED) == len(statuses)  # from the file


def test_a_program_that_is_not_right_has_no_mutants(tmp_path: Path) -> None:
    chosen = copy(tmp_path / "own")
    reference = chosen.reference / "vector_add.cu"
    reference.write_text(reference.read_text().replace("a[i] + b[i]", "a[i] - b[i]"))
    with pytest.raises(AssignmentError, match=r"reference as vector_add is not right: large/1000: .*c.txt"):
        mutate(chosen, Plan(only=("cu:8 `<`",)))


def result(verdict: Verdict, *, built: bool = True) -> ProblemResult:
    points = Points(earned=0, decided=0, possible=0)
    build = BuildResult(ok=built, seconds=0, cached=False, command="", log="", resources=[])
    return ProblemResult(
        id=NAME,
        title=NAME,
        verdict=verdict,
        points=points,
        build=build,
        correctness=CorrectnessResult(verdict=verdict),
        performance=PerformanceResult(verdict=Verdict.NOT_MEASURED, target=1.0),
        trust=TrustResult(verdict=Verdict.PASS),
    )


def rows(chosen: Assignment, answer: ProblemResult) -> dict[str, tuple[bool | None, str]]:
    shown = program_rows(chosen, NAME, lambda _: answer, lambda _: "the reason")
    return {title: (sound, text) for title, sound, text in shown}


def test_variants_that_fail_and_mutants_that_pass_are_named(tmp_path: Path) -> None:
    chosen = copy(tmp_path / "own")
    assert rows(chosen, result(Verdict.FAIL))["variants of vector_add"] == (
        False,
        "managed.cu fails: the reason",
    )
    sound, text = rows(chosen, result(Verdict.PASS))["mutants of vector_add"]
    assert not sound
    assert text.startswith("last-element passes: no case finds that the last element is left out; ")
    sound, text = rows(chosen, result(Verdict.FAIL, built=False))["mutants of vector_add"]
    assert (sound, text) == (
        False,
        "last-element does not compile; no-bound does not compile; one-block does not compile",
    )


def test_each_version_is_the_reference_with_one_file_changed(tmp_path: Path) -> None:
    chosen = copy(tmp_path / "own")
    seen = []

    def graded(folder: Path) -> ProblemResult:
        assert {path.name for path in folder.iterdir()} == {path.name for path in chosen.reference.iterdir()}
        seen.append((folder / "vector_add.cu").read_text())
        return result(Verdict.FAIL)

    list(program_rows(chosen, NAME, graded, lambda _: ""))
    assert "cudaMallocManaged" in seen[0]
    assert "if (i < n - 1)" in seen[1]
    assert len(seen) == 4


def test_an_edit_that_does_not_fit_is_told(tmp_path: Path) -> None:
    chosen = copy(tmp_path / "own")
    reference = chosen.reference / "vector_add.cu"
    reference.write_text(reference.read_text().replace("if (i < n)", "if (n > i)"))
    sound, text = rows(chosen, result(Verdict.FAIL))["mutants of vector_add"]
    assert (sound, text) == (False, "last-element: 'if (i < n)' occurs 0 times in vector_add.cu")


def test_other_problems_have_no_such_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    chosen = copy(tmp_path / "own")
    other: Any = object()
    monkeypatch.setattr(type(chosen), "problems", property(lambda _: {NAME: other}))
    assert rows(chosen, result(Verdict.FAIL)) == {}
