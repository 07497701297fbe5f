"""A part of the cases: some by their names, or as a quick answer those up to what is wrong.

The quick answer begins with the case that failed last time, then come a dozen small ones, then all.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from grader.judge.correctness.cases import Judged
from grader.records.record import CaseResult
from grader.records.verdict import Ending, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from grader.problems.problem import Case

DOZEN = 12
NOT_RUN = "not run: a case before it is wrong, and the quick way ends there"
NOT_NAMED = "not run: other cases were asked for"
INTERRUPTED = "not run: the grading was interrupted"


def passes(cases: Sequence[Case], failed: Collection[str]) -> tuple[tuple[Case, ...], ...]:
    """``cases`` in the parts that are judged one after the other, without empty ones.

    Args:
        cases: of a problem.
        failed: the names of those that failed the last time; the first of them is a part of its own.
    """
    again = next((case.name for case in cases if case.name in failed), "")
    small = sorted((case for case in cases if case.name != again), key=_elements)
    firsts = {case.group: case.name for case in reversed(small)}
    further = [case.name for case in small if case.name not in firsts.values()]
    dozen = [*firsts.values(), *further][:DOZEN]
    parts = (
        tuple(case for case in cases if case.name == again),
        tuple(case for case in cases if case.name in dozen),
        tuple(case for case in cases if case.name not in {again, *dozen}),
    )
    return tuple(part for part in parts if part)


def judged_in_passes(
    cases: Sequence[Case], failed: Collection[str], judge: Callable[[tuple[Case, ...]], Judged]
) -> Judged:
    """What ``judge`` says of the parts of ``cases``, up to one in which something is wrong.

    The cases come back in their order; those that were not run are NOT_MEASURED. It leaves out cases only
    where the grading was interrupted.
    """
    result = Judged(())
    for part in passes(cases, failed):
        result = joined(result, judge(part))
        wrong = any(case.verdict is not Verdict.PASS and not case.waived for case in result.cases)
        if wrong or any(finding.counts for finding in result.findings):
            return completed(result, cases, NOT_RUN)
    return completed(result, cases, INTERRUPTED)


def judged_by_name(
    cases: Sequence[Case], names: Collection[str], judge: Callable[[tuple[Case, ...]], Judged]
) -> Judged:
    """What ``judge`` says of those of ``cases`` with these names; the others are NOT_MEASURED."""
    chosen = tuple(case for case in cases if case.name in names)
    return completed(judge(chosen) if chosen else Judged(()), cases, NOT_NAMED)


def completed(judged: Judged, cases: Sequence[Case], message: str) -> Judged:
    """``judged`` with all ``cases`` in their order; those that were not run are undecided for this reason."""
    by_name = {case.name: case for case in judged.cases}
    return replace(judged, cases=tuple(by_name.get(case.name) or _not_run(case, message) for case in cases))


def _not_run(case: Case, message: str) -> CaseResult:
    return CaseResult(
        name=case.name, group=case.group, verdict=Verdict.NOT_MEASURED, ending=Ending.NOT_RUN, message=message
    )


def _elements(case: Case) -> int:
    return prod(max(1, size) for size in case.sizes.values())


def joined(first: Judged, other: Judged) -> Judged:
    """What two parts of the cases showed, in this order."""
    findings = tuple(dict.fromkeys((*first.findings, *other.findings)))
    hints = {(hint.file, hint.line, hint.kernel): hint for hint in (*first.hints, *other.hints)}
    waived = {**first.waived, **other.waived}
    return Judged(
        cases=(*first.cases, *other.cases),
        findings=findings,
        waived={finding: reason for finding, reason in waived.items() if finding not in findings},
        hints=tuple(hints.values()),
        counted=first.counted.joined(other.counted),
        printed=first.printed + other.printed,
        summary="" if first.cases else other.summary,
        machine_failed=first.machine_failed or other.machine_failed,
    )
