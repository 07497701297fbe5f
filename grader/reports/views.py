"""The two views of a record: staff see all of it; students no seed, no staff's reasons, no machine's paths.

Hiding happens here and nowhere else: a renderer shows the record that it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.records.verdict import Verdict
from grader.reports.escaping import without_folders

if TYPE_CHECKING:
    from grader.records.record import CaseResult, ProblemResult, Record

MACHINE = (
    "The grading machine failed. That is no fault of this submission and costs no points: it will be graded "
    "again."
)
DOUBTED = (
    "The facts about this problem contradict each other, so it got no points yet. That is no accusation: ask "
    "your instructor, who has the measurements."
)


@dataclass(frozen=True)
class View:
    """A record as its readers may see it."""

    record: Record
    staff: bool


def view(record: Record, *, staff: bool) -> View:
    """The record for staff, or what of it students may see."""
    if staff:
        return View(record, staff=True)
    shown = record.model_copy(
        update={
            "seed": 0,
            "sandbox": None,
            "device": record.device and record.device.model_copy(update={"reason": ""}),
            "submission": record.submission.model_copy(
                update={
                    "error": record.submission.error and without_folders(record.submission.error),
                    "notes": [without_folders(note) for note in record.submission.notes],
                }
            ),
            "error": record.error and MACHINE,
            "problems": [_problem(problem) for problem in record.problems],
        }
    )
    return View(shown, staff=False)


def _problem(problem: ProblemResult) -> ProblemResult:
    failed = problem.verdict is Verdict.INFRA_ERROR
    build, correctness, performance = problem.build, problem.correctness, problem.performance
    timed = [case.model_copy(update={"samples": {}}) for case in performance.cases]
    return problem.model_copy(
        update={
            "message": MACHINE if failed else without_folders(problem.message),
            "build": build
            and build.model_copy(
                update={"command": without_folders(build.command), "log": without_folders(build.log)}
            ),
            "correctness": correctness.model_copy(
                update={"cases": [_case(case) for case in correctness.cases]}
            ),
            "checks": [
                check.model_copy(
                    update={
                        "findings": [
                            finding.model_copy(update={"message": without_folders(finding.message)})
                            for finding in check.findings
                        ]
                    }
                )
                for check in problem.checks
            ],
            "performance": performance.model_copy(
                update={
                    "message": _said(performance.verdict, without_folders(performance.message)),
                    "cases": timed,
                }
            ),
            "trust": problem.trust.model_copy(update={"reasons": _reasons(problem)}),
        }
    )


def _case(case: CaseResult) -> CaseResult:
    return case.model_copy(update={"message": _said(case.verdict, without_folders(case.message))})


def _said(verdict: Verdict, message: str) -> str:
    """What a student reads in place of ``message``, which may tell staff's reasons or a machine's faults."""
    return {Verdict.UNTRUSTED: DOUBTED, Verdict.INFRA_ERROR: MACHINE}.get(verdict, message) if message else ""


def _reasons(problem: ProblemResult) -> list[str]:
    """What a file uses and may not is for its author to mend; how a running kernel was caught is not told."""
    if not problem.trust.reasons or (not problem.correctness.cases and problem.build is not None):
        return problem.trust.reasons
    return [DOUBTED]
