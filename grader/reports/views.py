"""The two views of a record. Students do not see the seed, reasons meant for staff, or paths of the machine.

Only this module hides anything: each report shows the whole record that it gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from grader.records.record import CaseResult
from grader.records.verdict import Verdict
from grader.reports.escaping import without_folders

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.records.record import GroupResult, ProblemResult, Record

MACHINE = (
    "The grading machine failed. This is not the fault of this submission and costs no points: it will be "
    "graded again."
)
DOUBTED = (
    "The facts about this problem contradict each other, so it got no points yet. Nobody accuses you of "
    "anything: ask your instructor, who has the measurements."
)


@dataclass(frozen=True)
class View:
    """A record as its reader may see it."""

    record: Record
    staff: bool


def view(record: Record, *, staff: bool, now: datetime | None = None) -> View:
    """The whole record for staff, or the part of it that students may see; ``now`` is the time of asking."""
    if staff:
        return View(record, staff=True)
    now = now or datetime.now(UTC)
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
            "problems": [_problem(_open(problem, now)) for problem in record.problems],
        }
    )
    return View(shown, staff=False)


def _open(problem: ProblemResult, now: datetime) -> ProblemResult:
    """The problem with a count in place of the cases of each hidden group, and without what the code printed.

    A kernel can print its inputs.
    """
    correctness = problem.correctness
    hidden = [group for group in correctness.groups if group.hidden_until and group.hidden_until > now]
    if not hidden:
        return problem
    names = {group.name for group in hidden}
    cases = [case for case in correctness.cases if case.group not in names]
    cases += [_count(group, correctness.cases) for group in hidden]
    shown = correctness.model_copy(update={"cases": cases})
    return problem.model_copy(update={"correctness": shown, "printed": ""})


def _count(group: GroupResult, cases: Sequence[CaseResult]) -> CaseResult:
    """What stands for those of the ``cases`` that are in a hidden group."""
    counted = [case for case in cases if case.group == group.name and not case.waived]
    until = f"hidden until {group.hidden_until:%Y-%m-%d %H:%M %z}"
    right = sum(case.verdict is Verdict.PASS for case in counted)
    return CaseResult(
        name=f"{right} of {len(counted)} hidden cases are right",
        group=group.name,
        verdict=group.verdict,
        message="" if group.verdict is Verdict.PASS else until,
    )


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
                update={"cases": [_case(case) for case in correctness.cases], "unreached": []}
            ),
            "performance": performance.model_copy(
                update={
                    "message": _shown(performance.verdict, without_folders(performance.message)),
                    "cases": timed,
                }
            ),
            "trust": problem.trust.model_copy(update={"reasons": _reasons(problem)}),
        }
    )


def _case(case: CaseResult) -> CaseResult:
    message = _shown(case.verdict, without_folders(case.message))
    return case.model_copy(update={"message": message, "file": without_folders(case.file)})


def _shown(verdict: Verdict, message: str) -> str:
    """The text for students instead of ``message``, which may have reasons for staff or machine faults."""
    return {Verdict.UNTRUSTED: DOUBTED, Verdict.INFRA_ERROR: MACHINE}.get(verdict, message) if message else ""


def _reasons(problem: ProblemResult) -> list[str]:
    """The reasons for students: forbidden code in a file is named, so that they can correct it.

    How a running kernel was caught is not shown.
    """
    if not problem.trust.reasons or (not problem.correctness.cases and problem.build is not None):
        return problem.trust.reasons
    return [DOUBTED]
