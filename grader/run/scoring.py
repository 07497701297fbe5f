"""From verdicts to points: pure functions of what the cases, the checkers and the clock said.

Case groups share the correctness points as the assignment says; a group earns its share if all its cases
pass. Where the assignment says so, the outputs divide a group's share, and each earns its part if it is right
in all cases of the group. Performance points are ``points x min(1, speedup / target)``, or those of the
fastest step that was reached where the assignment has steps, and none unless every group passed. A demand
that is met earns its points under the same condition, and where a required one is not met, the problem earns
nothing. What the machine could not tell (NOT_MEASURED, INFRA_ERROR) is undecided: neither earned nor lost. A
problem of which a case reached what the simulator lacks does not pass.

Layer: imports assignment, results, verdict and what a speed verdict is decided by.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.judge.timing.statistics import Goal
from grader.problems.problem import MEMORY_GROUP
from grader.records.findings import KINDS
from grader.records.record import GroupResult, Points
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from grader.assignments.rules import ProblemPoints
    from grader.records.record import CaseResult, DemandResult, PerformanceResult

_WORST_FIRST = (
    Verdict.UNTRUSTED,
    Verdict.FAIL,
    Verdict.INFRA_ERROR,
    Verdict.NOT_MEASURED,
    Verdict.AMBIGUOUS,
    Verdict.PASS,
)
_EARNING = {Verdict.PASS, Verdict.AMBIGUOUS}


def goal(entry: ProblemPoints) -> Goal:
    """What the speed of a problem is worth, of all that it is worth."""
    share = entry.performance / entry.possible if entry.possible else 0.0
    return Goal(entry.target, tuple(step.at for step in entry.steps), share)


@dataclass(frozen=True)
class ProblemScore:
    """Points and verdicts of one problem."""

    verdict: Verdict
    correctness: Verdict
    points: Points
    groups: tuple[GroupResult, ...]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict of a whole from those of its parts; NOT_MEASURED if it has none."""
    return min(verdicts, key=_WORST_FIRST.index, default=Verdict.NOT_MEASURED)


def memory_verdict(entry: ProblemPoints, kinds: Iterable[str], cases: Sequence[CaseResult]) -> Verdict:
    """The verdict of the group that the checkers decide.

    Args:
        entry: what the problem is worth.
        kinds: the kinds of all findings.
        cases: of the problem. Where none passed there is nothing that the checkers could have found in order,
            and where some were not run they have not seen all.
    """
    if any(KINDS[kind].costs and not KINDS[kind].by_cases for kind in kinds):
        return Verdict.FAIL
    if any(case.verdict is Verdict.NOT_MEASURED and not case.waived for case in cases):
        return Verdict.NOT_MEASURED
    some_right = entry.per_output and _right_outputs([case for case in cases if not case.waived]) > 0
    if not some_right and not any(map(_something_right, cases)):
        return worst(case.verdict for case in cases if not case.waived)
    return Verdict.PASS


def _something_right(case: CaseResult) -> bool:
    """Whether a case passed; one whose outputs have no elements passes without any work."""
    sizes = [output.total for output in case.outputs]
    return case.verdict is Verdict.PASS and (not sizes or any(sizes))


def score_problem(
    entry: ProblemPoints,
    group_points: Mapping[str, float],
    groups: Sequence[str],
    cases: Sequence[CaseResult],
    memory: Verdict,
    performance: PerformanceResult,
    demands: Sequence[DemandResult] = (),
) -> ProblemScore:
    """The score of a problem whose cases ran, all or in part.

    Waived cases do not count, and a group that has no others leaves its points to the rest.

    Args:
        entry: what the problem is worth.
        group_points: points of the groups that do not share equally.
        groups: the problem's case groups, without the memory group.
        cases: results of the cases.
        memory: verdict of the memory group.
        performance: the speed verdict.
        demands: what was found for what else the assignment asks for.
    """
    counted = [case for case in cases if not case.waived]
    graded = {case.group for case in counted} | (set(groups) - {case.group for case in cases})
    verdicts = {
        name: worst(case.verdict for case in counted if case.group == name)
        for name in groups
        if name in graded
    }
    partial = {
        name: _right_outputs([case for case in counted if case.group == name])
        for name, verdict in verdicts.items()
        if entry.per_output and verdict is Verdict.FAIL
    }
    return _score(
        entry,
        group_points,
        {**verdicts, MEMORY_GROUP: memory},
        performance.verdict,
        _speed_points(entry, performance),
        partial,
        demands,
        lacking=any(case.gaps for case in counted),
    )


def _right_outputs(cases: Sequence[CaseResult]) -> float:
    """The share of outputs that are right in all ``cases``; 0 where one failed by more than its numbers."""
    names = {output.name for case in cases for output in case.outputs}
    wrong: set[str] = set()
    for case in (case for case in cases if case.verdict is Verdict.FAIL):
        bad = {output.name for output in case.outputs if output.bad}
        wrong |= names if case.message or not bad else bad
    return 1 - len(wrong) / len(names) if names else 0.0


def score_without_cases(
    entry: ProblemPoints,
    group_points: Mapping[str, float],
    groups: Sequence[str],
    verdict: Verdict,
    performance: Verdict = Verdict.NOT_MEASURED,
) -> ProblemScore:
    """The score of a problem of which no case ran: not built, missing, not part of this release, a fault.

    Args:
        entry: what the problem is worth.
        group_points: points of the groups that do not share equally.
        groups: the problem's case groups, without the memory group; may be empty where they are not known.
        verdict: of every group.
        performance: FAIL where the speed would have been measured, else NOT_MEASURED.
    """
    return _score(entry, group_points, dict.fromkeys((*groups, MEMORY_GROUP), verdict), performance, 0.0)


def total(points: Iterable[Points]) -> Points:
    """The points of a run from those of its problems."""
    listed = list(points)
    return _points(
        sum(part.earned for part in listed),
        sum(part.decided for part in listed),
        sum(part.possible for part in listed),
    )


def _score(
    entry: ProblemPoints,
    group_points: Mapping[str, float],
    verdicts: Mapping[str, Verdict],
    performance: Verdict,
    speed_points: float,
    partial: Mapping[str, float] | None = None,
    demands: Sequence[DemandResult] = (),
    *,
    lacking: bool = False,
) -> ProblemScore:
    """The score from the verdicts of all groups.

    ``partial``: what share of its points a failed one keeps; ``lacking``: whether the simulator could not run
    what a case reached.
    """
    shares = _shares(entry.correctness, group_points, tuple(verdicts))
    correctness = worst(verdict for verdict in verdicts.values() if verdict is not Verdict.NOT_MEASURED)
    refused = any(demand.required and demand.verdict is Verdict.FAIL for demand in demands)
    if lacking and correctness in _EARNING:
        correctness = Verdict.NOT_MEASURED
    if Verdict.UNTRUSTED in {correctness, performance}:
        correctness = performance = Verdict.UNTRUSTED
        verdicts = dict.fromkeys(verdicts, Verdict.UNTRUSTED)
    parts = {name: 1.0 if verdict in _EARNING else 0.0 for name, verdict in verdicts.items()}
    parts |= {name: part for name, part in (partial or {}).items() if verdicts[name] is Verdict.FAIL}
    earned = sum(shares[name] * part for name, part in parts.items())
    decided = sum(shares[name] for name, verdict in verdicts.items() if verdict.decided)
    if performance.decided and correctness.decided:
        decided += entry.performance
        if correctness in _EARNING:
            earned += speed_points
    if correctness.decided:
        decided += sum(demand.points for demand in demands if demand.verdict.decided)
    if correctness in _EARNING:
        earned += sum(demand.points for demand in demands if demand.verdict in _EARNING)
    if refused:
        earned, decided = 0.0, entry.possible
    return ProblemScore(
        verdict=_overall(correctness, [performance, *(demand.verdict for demand in demands)]),
        correctness=correctness,
        points=_points(earned, decided, entry.possible),
        groups=tuple(
            GroupResult(
                name=name,
                verdict=verdict,
                earned=_rounded(shares[name] * parts[name]),
                possible=_rounded(shares[name]),
            )
            for name, verdict in verdicts.items()
        ),
    )


def _overall(correctness: Verdict, verdicts: Iterable[Verdict]) -> Verdict:
    """A problem passes if it is right and nothing else that was measured of it fails."""
    if correctness is not Verdict.PASS:
        return correctness
    return worst(
        (correctness, *(verdict for verdict in verdicts if verdict not in {*_EARNING, Verdict.NOT_MEASURED}))
    )


def _shares(
    correctness: float, group_points: Mapping[str, float], groups: tuple[str, ...]
) -> dict[str, float]:
    """Points per group: those that the assignment names, and the rest in equal parts.

    Where all groups are named, what they leave over is shared in proportion, or equally if they name nothing:
    the whole is always given.
    """
    named = {name: group_points[name] for name in groups if name in group_points}
    unnamed = [name for name in groups if name not in named]
    if not unnamed and not any(named.values()):
        return dict.fromkeys(groups, correctness / len(groups))
    if not unnamed:
        scale = correctness / sum(named.values())
        return {name: points * scale for name, points in named.items()}
    rest = (correctness - sum(named.values())) / len(unnamed)
    return {name: named.get(name, rest) for name in groups}


def _speed_points(entry: ProblemPoints, performance: PerformanceResult) -> float:
    """What a right kernel earns for its speed; an interval that straddles counts for the student."""
    if performance.verdict in _EARNING:
        return entry.performance
    speedup = performance.speedup or 0.0
    if not entry.steps:
        return entry.performance * min(1.0, max(0.0, speedup / entry.target))
    fastest = performance.interval[1] if performance.interval else speedup
    return max((step.points for step in entry.steps if step.at <= fastest), default=0.0)


def _points(earned: float, decided: float, possible: float) -> Points:
    return Points(earned=_rounded(earned), decided=_rounded(decided), possible=_rounded(possible))


def _rounded(points: float) -> float:
    """Points as everybody sees them: two decimals, rounded here and nowhere else."""
    return round(points, 2)
