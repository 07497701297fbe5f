"""Submissions to the original course are graded as they are, and each defect is found where it is."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from typing import TYPE_CHECKING

import pytest
from submissions import FOUR, HANDED, Handed

from grader.assignments.assignment import load
from grader.reports import console
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import ProblemResult, Record

ASSIGNMENT = load("handout")
pytestmark = pytest.mark.usefixtures("ptx_only")


def graded(path: Path, problems: tuple[str, ...]) -> Record:
    """Graded on the usual cases: the fixture has to be in use."""
    return grading.grade(asked(path, problems), bench=remembering())


def asked(path: Path, problems: tuple[str, ...]) -> grading.GradingRequest:
    return grading.GradingRequest(path, ASSIGNMENT, problems, GradingOptions("sim"), seed=1)


@cache
def remembering() -> Bench:
    """What all gradings here share: they meet the same cases."""
    return Bench(remembers=True)


def written(folder: Path, handed: Handed) -> Path:
    for name, content in handed.tree().items():
        path = folder / "llmsys hw3" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder


def said(record: Record, problem: ProblemResult) -> str:
    """All that the report says of a problem, without line breaks."""
    text = io.StringIO()
    console.show(record.model_copy(update={"problems": [problem]}), text, verbose=True)
    return " ".join(text.getvalue().split())


@pytest.mark.usefixtures("usual_cases")
@pytest.mark.parametrize("handed", HANDED, ids=lambda handed: handed.name)
def test_a_submission_gets_what_it_is_worth_and_is_told_why(handed: Handed, tmp_path: Path) -> None:
    record = graded(written(tmp_path, handed), tuple(handed.expected))
    assert record.error is None
    for problem in record.problems:
        expected = handed.expected[problem.id]
        text = said(record, problem)
        assert problem.points.decided == 12, text
        if expected.earned is None:
            assert problem.points.earned < 12, text
        else:
            assert problem.points.earned == expected.earned, text
        for words in expected.says:
            assert words in text


def test_a_whole_homework_in_an_archive_says_what_was_taken_and_what_is_waived(tmp_path: Path) -> None:
    archive = tmp_path / "last first" / "hw3.zip"
    archive.parent.mkdir()
    complete = next(handed for handed in HANDED if handed.name == "complete")
    with zipfile.ZipFile(archive, "w") as file:
        for name, content in complete.tree().items():
            file.writestr(f"données/llmsys hw3/{name}", content)
            file.writestr(f"__MACOSX/données/llmsys hw3/._{name}", b"\x00\x05")
        file.writestr("données/llmsys hw3/old/softmax_kernel.cu", "#error an older one\n")
        file.writestr("données/llmsys hw3/.git/objects/ab/cdef", b"\x78\x01")
        file.writestr("données/llmsys hw3/minitorch/cuda_kernels/softmax_kernel.so", b"\x7fELF")
    record = grading.grade(asked(archive, FOUR))
    assert (record.score.earned, record.score.decided, record.score.possible) == (48, 48, 80)
    assert record.exit_code == 0
    assert {problem.id: problem.performance.target for problem in record.problems} == {
        entry.id: entry.with_host_pointers().target for entry in ASSIGNMENT.rules.problems
    }
    notes = "; ".join(record.submission.notes)
    assert "layernorm_kernel.cu and softmax_kernel.cu were taken from données/llmsys hw3/src/" in notes
    assert (
        "took données/llmsys hw3/src/softmax_kernel.cu, not données/llmsys hw3/old/softmax_kernel.cu" in notes
    )
    assert "ignored données/llmsys hw3/minitorch/cuda_kernels/softmax_kernel.so" in notes
    backward = next(problem for problem in record.problems if problem.id == "layernorm_backward")
    findings = [finding for check in backward.checks for finding in check.findings]
    assert {finding.waived for finding in findings if finding.kind == "global_oob"} == {
        "the starter's last tile of 32 columns goes past the end"
    }
    assert all(check.verdict == "PASS" for check in backward.checks)
    assert "(waived: the starter's last tile" in said(record, backward)
