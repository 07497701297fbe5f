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
    return [one for one in judgements if one.status is Status.SURVIVED and one.mutant.key not in explained]


def scores(judgements: Iterable[Judgement], explained: Mapping[str, Survivor]) -> tuple[float, float]:
    """Killed mutants by all that compile and are not equivalent; the same with those that are reported."""
    found = [_column(one, explained) for one in judgements]
    counted = [column for column in found if column in _COUNTED]
    if not counted:
        return 1.0, 1.0
    killed, reported = counted.count("killed"), counted.count("reported")
    return killed / len(counted), (killed + reported) / len(counted)


def sound(judgements: Sequence[Judgement], explained: Mapping[str, Survivor]) -> bool:
    """Whether all are judged and none survives without a reason; of tiers, no more than a small share."""
    if any(one.status is Status.NOT_JUDGED for one in judgements):
        return False
    lost = unexplained(judgements, explained)
    tiers = [one for one in judgements if one.mutant.tier is not None]
    allowed = TIERS_THAT_SURVIVE * sum(_column(one, explained) in _COUNTED for one in tiers)
    lost_tiers = sum(one.mutant.tier is not None for one in lost)
    return lost_tiers <= allowed and lost_tiers == len(lost)


def report(judgements: Sequence[Judgement], explained: Mapping[str, Survivor]) -> str:
    """The whole page."""
    judged = [one for one in judgements if one.status is not Status.NOT_JUDGED]
    tiers = any(one.mutant.tier is not None for one in judgements)
    return "\n".join(
        [
            *_table("problem" if tiers else "file", judged, explained, _origin, tiers=tiers),
            "",
            *_table("operator", judged, explained, lambda one: one.mutant.edit.operator, tiers=tiers),
            "",
            *_survivors(judged, explained),
            *_reported(judged),
            *_not_executed(judged),
            *_left(judgements),
        ]
    )


def _origin(one: Judgement) -> str:
    """What the first table has a row for: a file, or of tiers a problem."""
    return one.mutant.label if one.mutant.tier is None else one.mutant.kernels[0].problem.id


def _column(one: Judgement, explained: Mapping[str, Survivor]) -> str:
    if one.status is Status.SURVIVED and (reason := explained.get(one.mutant.key)):
        return "equivalent, explained" if reason.equivalent else "survive, explained"
    names = {
        Status.NOT_COMPILED: "do not compile",
        Status.SURVIVED: "survive",
    }
    return names.get(one.status, one.status.value)


def _table(
    first: str,
    judged: Sequence[Judgement],
    explained: Mapping[str, Survivor],
    row_of: Callable[[Judgement], str],
    *,
    tiers: bool,
) -> Iterator[str]:
    rows: dict[str, list[Judgement]] = defaultdict(list)
    for one in judged:
        rows[row_of(one)].append(one)
    counts = _COLUMNS_OF_TIERS if tiers else _COLUMNS
    last = ("share that survives",) if tiers else ("score", "with reported")
    yield f"| {first} | {' | '.join(('mutants', *counts, *last))} |"
    yield "|---" + "|--:" * (1 + len(counts) + len(last)) + "|"
    for name, mine in (*sorted(rows.items()), ("all", [*judged])):
        found = [_column(one, explained) for one in mine]
        numbers = [len(mine), *(found.count(column) for column in counts)]
        killed, reported = scores(mine, explained)
        shares = (f"{score:.1%}" for score in ((1 - reported,) if tiers else (killed, reported)))
        yield f"| {name} | {' | '.join((*map(str, numbers), *shares))} |"


def _survivors(judged: Sequence[Judgement], explained: Mapping[str, Survivor]) -> Iterator[str]:
    survived = [one for one in judged if one.status is Status.SURVIVED]
    for one in survived:
        if reason := explained.get(one.mutant.key):
            sort = "equivalent" if reason.equivalent else "survives"
            yield f"* {one.mutant.title} ({one.mutant.edit.operator}): {sort}: {reason.reason}"
    lost = unexplained(survived, explained)
    if lost and all(one.mutant.tier is not None for one in lost):
        yield "\nNo case finds these, and an input that shows each stands beside it:\n"
    elif lost:
        yield "\nNo case finds these. Add the cheapest case that does and that no right kernel can fail, or"
        yield "explain them in mutants/survivors.toml:\n"
    for one in lost:
        source = one.mutant.kernels[0].files[one.mutant.file].split("\n")[one.mutant.lines[0] - 1].strip()
        yield f"* {one.mutant.title} ({one.mutant.edit.operator})"
        yield f"  in: `{source}`"
        yield f"  needed: {_needed(one)}"
        if one.mutant.tier is None:
            yield f'  [[survivor]]\n  key = "{one.mutant.key}"\n  edit = {json.dumps(one.mutant.title)}'


def _reported(judged: Sequence[Judgement]) -> Iterator[str]:
    reported = [one for one in judged if one.status is Status.REPORTED]
    if reported:
        yield "\nThese pass, but are reported for what the right kernel is not, which costs no points:\n"
    for one in reported:
        found = [finding for finding in one.findings.values() if finding.status is Status.REPORTED]
        places = ", ".join(f"{finding.said} in {finding.case}" for finding in found)
        yield f"* {one.mutant.title} ({one.mutant.edit.operator}): {places}"


def _needed(one: Judgement) -> str:
    """The case that would find a survivor."""
    found = {kernel.problem.id: one.findings.get(kernel.id) for kernel in one.mutant.kernels}
    if one.mutant.tier is not None:
        ((problem, finding),) = found.items()
        assert finding is not None
        return f"a case of {problem} where {one.mutant.tier.interval}, such as {finding.case}: {finding.said}"
    places = ", ".join(
        f"{problem} ({finding.launched} of its cases run what changes)"
        for problem, finding in found.items()
        if finding is not None and finding.status is Status.SURVIVED
    )
    return f"a case of {places} " + (f"where {needs}" if (needs := one.mutant.edit.needs) else "unlike those")


def _not_executed(judged: Sequence[Judgement]) -> Iterator[str]:
    idle = [one for one in judged if one.status is Status.NOT_EXECUTED]
    if idle:
        yield "\nThese change only what no case runs, which counts as equivalent:\n"
    for one in idle:
        said = {finding.said for finding in one.findings.values() if finding.said} or {"nothing calls it"}
        yield f"* {one.mutant.title}: {', '.join(sorted(said))}"


def _left(judgements: Sequence[Judgement]) -> Iterator[str]:
    left = sum(one.status is Status.NOT_JUDGED for one in judgements)
    if left:
        yield f"\n{left} mutants are left: run again with the same --json."
