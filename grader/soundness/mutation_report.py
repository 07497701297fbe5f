"""What ``grader assignment mutate`` prints: tables, and what survived and why, in Markdown.

Layer: imports mutate and survivors.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING

from grader.soundness.killers import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from grader.soundness.mutate import Judgement
    from grader.soundness.survivors import Survivor

TIERS_THAT_SURVIVE = 0.01
"""The largest share of tiers that may survive without a reason."""

_COLUMNS = (
    *("do not compile", "same PTX", "not executed", "equivalent, explained", "killed", "reported"),
    *("survive, explained", "survive"),
)
_COLUMNS_OF_TIERS = (
    *("do not compile", "same PTX", "no input shows it", "for a GPU alone", "killed", "reported", "survive"),
)
_COUNTED = frozenset({"killed", "reported", "survive, explained", "survive"})


def unexplained(judgements: Iterable[Judgement], explained: Mapping[str, Survivor]) -> list[Judgement]:
    """The mutants that survived without a reason."""
    return [
        judgement
        for judgement in judgements
        if judgement.status is Status.SURVIVED and judgement.mutant.key not in explained
    ]


def scores(judgements: Iterable[Judgement], explained: Mapping[str, Survivor]) -> tuple[float, float]:
    """The share of killed mutants among those that compile and are not equivalent.

    The second number counts the reported ones as killed, too.
    """
    columns = [_column(judgement, explained) for judgement in judgements]
    counted = [column for column in columns if column in _COUNTED]
    if not counted:
        return 1.0, 1.0
    killed, reported = counted.count("killed"), counted.count("reported")
    return killed / len(counted), (killed + reported) / len(counted)


def sound(judgements: Sequence[Judgement], explained: Mapping[str, Survivor]) -> bool:
    """Whether all are judged and none survives without a reason; of tiers, no more than a small share."""
    if any(judgement.status is Status.NOT_JUDGED for judgement in judgements):
        return False
    lost = unexplained(judgements, explained)
    tiers = [judgement for judgement in judgements if judgement.mutant.tier is not None]
    allowed = TIERS_THAT_SURVIVE * sum(_column(judgement, explained) in _COUNTED for judgement in tiers)
    lost_tiers = sum(judgement.mutant.tier is not None for judgement in lost)
    return lost_tiers <= allowed and lost_tiers == len(lost)


def report(judgements: Sequence[Judgement], explained: Mapping[str, Survivor]) -> str:
    """The page in Markdown: the tables, then survivors, reported mutants and those that nothing executes."""
    judged = [judgement for judgement in judgements if judgement.status is not Status.NOT_JUDGED]
    tiers = any(judgement.mutant.tier is not None for judgement in judgements)
    return "\n".join(
        [
            *_table("problem" if tiers else "file", judged, explained, _origin, tiers=tiers),
            "",
            *_table(
                "operator", judged, explained, lambda judgement: judgement.mutant.edit.operator, tiers=tiers
            ),
            "",
            *_survivors(judged, explained),
            *_reported(judged),
            *_not_executed(judged),
            *_not_judged(judgements),
        ]
    )


def _origin(judgement: Judgement) -> str:
    """The row of the first table that a mutant belongs to: its file, or of a tier its problem."""
    return judgement.mutant.label if judgement.mutant.tier is None else judgement.mutant.kernels[0].problem.id


def _column(judgement: Judgement, explained: Mapping[str, Survivor]) -> str:
    if judgement.status is Status.SURVIVED and (reason := explained.get(judgement.mutant.key)):
        return "equivalent, explained" if reason.equivalent else "survive, explained"
    names = {
        Status.NOT_COMPILED: "do not compile",
        Status.SURVIVED: "survive",
    }
    return names.get(judgement.status, judgement.status.value)


def _table(
    first: str,
    judged: Sequence[Judgement],
    explained: Mapping[str, Survivor],
    row_of: Callable[[Judgement], str],
    *,
    tiers: bool,
) -> Iterator[str]:
    rows: dict[str, list[Judgement]] = defaultdict(list)
    for judgement in judged:
        rows[row_of(judgement)].append(judgement)
    counts = _COLUMNS_OF_TIERS if tiers else _COLUMNS
    last = ("share that survives",) if tiers else ("score", "with reported")
    yield f"| {first} | {' | '.join(('mutants', *counts, *last))} |"
    yield "|---" + "|--:" * (1 + len(counts) + len(last)) + "|"
    for name, row in (*sorted(rows.items()), ("all", [*judged])):
        columns = [_column(judgement, explained) for judgement in row]
        numbers = [len(row), *(columns.count(column) for column in counts)]
        killed, reported = scores(row, explained)
        shares = (f"{score:.1%}" for score in ((1 - reported,) if tiers else (killed, reported)))
        yield f"| {name} | {' | '.join((*map(str, numbers), *shares))} |"


def _survivors(judged: Sequence[Judgement], explained: Mapping[str, Survivor]) -> Iterator[str]:
    survived = [judgement for judgement in judged if judgement.status is Status.SURVIVED]
    for judgement in survived:
        if reason := explained.get(judgement.mutant.key):
            sort = "equivalent" if reason.equivalent else "survives"
            yield f"* {judgement.mutant.title} ({judgement.mutant.edit.operator}): {sort}: {reason.reason}"
    lost = unexplained(survived, explained)
    if lost and all(judgement.mutant.tier is not None for judgement in lost):
        yield "\nNo case finds these, and an input that shows each stands beside it:\n"
    elif lost:
        yield "\nNo case finds these. Add the cheapest case that does and that no right kernel can fail, or"
        yield "explain them in mutants/survivors.toml:\n"
    for judgement in lost:
        source = (
            judgement.mutant.kernels[0]
            .files[judgement.mutant.file]
            .split("\n")[judgement.mutant.lines[0] - 1]
            .strip()
        )
        yield f"* {judgement.mutant.title} ({judgement.mutant.edit.operator})"
        yield f"  in: `{source}`"
        yield f"  needed: {_needed(judgement)}"
        if judgement.mutant.tier is None:
            mutant = judgement.mutant
            yield f'  [[survivor]]\n  key = "{mutant.key}"\n  edit = {json.dumps(mutant.title)}'


def _reported(judged: Sequence[Judgement]) -> Iterator[str]:
    reported = [judgement for judgement in judged if judgement.status is Status.REPORTED]
    if reported:
        yield "\nThese pass, but are reported for what the right kernel is not, which costs no points:\n"
    for judgement in reported:
        findings = [finding for finding in judgement.findings.values() if finding.status is Status.REPORTED]
        reports = ", ".join(f"{finding.text} in {finding.case}" for finding in findings)
        yield f"* {judgement.mutant.title} ({judgement.mutant.edit.operator}): {reports}"


def _needed(judgement: Judgement) -> str:
    """The case that would find a survivor."""
    findings = {kernel.problem.id: judgement.findings.get(kernel.id) for kernel in judgement.mutant.kernels}
    if judgement.mutant.tier is not None:
        ((problem, finding),) = findings.items()
        assert finding is not None
        interval = judgement.mutant.tier.interval
        return f"a case of {problem} where {interval}, such as {finding.case}: {finding.text}"
    problems = ", ".join(
        f"{problem} ({finding.launched} of its cases run what changes)"
        for problem, finding in findings.items()
        if finding is not None and finding.status is Status.SURVIVED
    )
    return f"a case of {problems} " + (
        f"where {needs}" if (needs := judgement.mutant.edit.needs) else "unlike those"
    )


def _not_executed(judged: Sequence[Judgement]) -> Iterator[str]:
    idle = [judgement for judgement in judged if judgement.status is Status.NOT_EXECUTED]
    if idle:
        yield "\nThese change only what no case runs, which counts as equivalent:\n"
    for judgement in idle:
        reasons = {finding.text for finding in judgement.findings.values() if finding.text} or {
            "nothing calls it"
        }
        yield f"* {judgement.mutant.title}: {', '.join(sorted(reasons))}"


def _not_judged(judgements: Sequence[Judgement]) -> Iterator[str]:
    number = sum(judgement.status is Status.NOT_JUDGED for judgement in judgements)
    if number:
        yield f"\n{number} mutants are left: run again with the same --json."
