"""The causes of lost points, and the checkers' findings, once for each source line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.records.mangled import own_names_in
from grader.records.verdict import Verdict
from grader.reports.escaping import line, readable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.records.record import CaseResult, ProblemResult, Record, SourceLines

COMPILE_ERROR = re.compile(
    r"^(?P<file>[^\s(:][^(:\n]*)(?:\((?P<line>\d+)\)|:(?P<row>\d+):\d+): "
    r"(?:fatal |catastrophic )?error\b:?\s*(?P<message>.*)$",
    re.MULTILINE,
)
"""Matches an error of nvcc, or of the host's preprocessor and compiler."""
_PLACE = re.compile(r"(?:, stored)? at \S+$")


@dataclass(frozen=True)
class Sighting:
    """What a checker found at one line, in one or more kernels."""

    tool: str
    kind: str
    file: str
    line: int
    message: str  # of the first finding
    source: SourceLines | None
    kernels: tuple[str, ...]
    times: int
    waived: str = ""  # the reason why it costs no points; empty if it does

    @property
    def title(self) -> str:
        """The kind in words, and the checker."""
        return f"{self.kind.replace('_', ' ')} ({self.tool})"

    @property
    def where(self) -> str:
        """File and line, or the kernels if no line is known."""
        position = f"{self.file}:{self.line}" if self.line else ", ".join(self.kernels)
        return line(position) or "the host's code"


def sightings(problem: ProblemResult) -> tuple[Sighting, ...]:
    """The findings of all checkers; those of several kernels or template instances at a line are merged."""
    merged: dict[tuple[str, str, str, int, str], Sighting] = {}
    for check in problem.checks:
        for finding in check.findings:
            key = (check.tool, finding.kind, finding.file, finding.line, finding.waived)
            before = merged.get(key)
            kernel = _kernel(finding.kernel)
            merged[key] = Sighting(
                *key[:4],
                waived=finding.waived,
                message=before.message if before else finding.message,
                source=before.source if before else finding.source,
                kernels=tuple(dict.fromkeys((*(before.kernels if before else ()), *filter(None, [kernel])))),
                times=1 + (before.times if before else 0),
            )
    return tuple(merged.values())


def hints(problem: ProblemResult) -> tuple[Sighting, ...]:
    """The hints on speed, one for each source line."""
    return tuple(
        Sighting("sim", "hint", hint.file, hint.line, hint.message, hint.source, (_kernel(hint.kernel),), 1)
        for hint in problem.hints
    )


def _kernel(name: str) -> str:
    """The name of a kernel without template arguments."""
    return own_names_in(name).partition("<")[0]


def wrong(problem: ProblemResult) -> tuple[CaseResult, ...]:
    """The cases that count, ran and did not pass, in order."""
    harmless = {Verdict.PASS, Verdict.NOT_MEASURED}
    return tuple(
        case for case in problem.correctness.cases if case.verdict not in harmless and not case.waived
    )


def unmeasured(record: Record) -> list[str]:
    """Why speeds were not measured, each reason once, with the problems if it is not that of all."""
    reasons: dict[str, list[str]] = {}
    for problem in record.problems:
        performance = problem.performance
        if performance.verdict is Verdict.NOT_MEASURED and performance.message:
            reasons.setdefault(line(performance.message), []).append(problem.id)
    if len(reasons) == 1:
        return list(reasons)
    return [f"{', '.join(ids)}: {reason}" for reason, ids in reasons.items()]


def case_cause(case: CaseResult) -> str:
    """The reason in one line why a case did not pass; empty if it did."""
    if case.verdict is Verdict.PASS:
        return ""
    bad = next((f"{out.name}: {out.bad:,} of {out.total:,} wrong" for out in case.outputs if out.bad), "")
    return readable(case.diagnosis or case.message or bad or case.verdict)


@dataclass(frozen=True)
class Alike:
    """A case that did not pass, and the names of other cases with the same reason and no numbers."""

    case: CaseResult
    repeats: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many cases these are."""
        return 1 + len(self.repeats)


def alike(cases: Iterable[CaseResult]) -> tuple[Alike, ...]:
    """Cases without wrong numbers to show, merged if their reasons are equal; the others separately."""
    groups: dict[tuple[str, ...], list[CaseResult]] = {}
    for case in cases:
        key = (case.name,) if any(output.bad for output in case.outputs) else (case.verdict, case_cause(case))
        groups.setdefault(key, []).append(case)
    return tuple(Alike(same[0], tuple(case.name for case in same[1:])) for same in groups.values())


def without_place(cause: str) -> str:
    """A cause without its file and line."""
    return _PLACE.sub("", cause)
