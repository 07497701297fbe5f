"""All results as one table for a spreadsheet, with a row for each submission; unknown points are blank."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, NamedTuple

from grader.records.verdict import Verdict
from grader.reports.escaping import cell, line
from grader.reports.fix_first import causes
from grader.reports.gaps import gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grader.records.record import ProblemResult, Record

PENDING = "not graded yet"
TOTALS = ("score", "decided", "possible")
_DECIMALS = 2


def gradebook(results: Mapping[str, Record | None]) -> str:
    """The records by submission, None for one without a result, as CSV.

    Columns: the submission, points earned, decided and possible, the points earned in each problem, the
    verdict on each problem, and a note.
    """
    ids = problem_ids(results)
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["submission", *TOTALS, *ids, *(f"{name} verdict" for name in ids), "note"])
    for name in sorted(results):
        record = results[name]
        problems = {problem.id: problem for problem in record.problems} if record else {}
        cells = [
            name,
            *map(shown, totals(record)),
            *(shown(earned(problems.get(problem_id))) for problem_id in ids),
            *(str(problems[problem_id].verdict) if problem_id in problems else "" for problem_id in ids),
            note(record),
        ]
        writer.writerow([cell(text) for text in cells])
    return text.getvalue()


def problem_ids(results: Mapping[str, Record | None]) -> tuple[str, ...]:
    """Every problem that a record has, in the order of the records."""
    records = filter(None, results.values())
    return tuple(dict.fromkeys(problem.id for record in records for problem in record.problems))


class Totals(NamedTuple):
    """Points of a record, to two decimals; None where they are open."""

    earned: float | None = None
    decided: float | None = None
    possible: float | None = None


def totals(record: Record | None) -> Totals:
    """Points earned, decided and possible.

    They are open if the machine failed or the simulator could not run what a case reached: the sum would be
    too small.
    """
    if record is None:
        return Totals()
    complete = record.error is None and all(
        problem.verdict is not Verdict.INFRA_ERROR and not gaps(problem) for problem in record.problems
    )
    score = record.score
    return Totals(
        round(score.earned, _DECIMALS) if complete and score.decided else None,
        round(score.decided, _DECIMALS) if complete else None,
        round(score.possible, _DECIMALS),
    )


def earned(problem: ProblemResult | None) -> float | None:
    """The points earned in a problem, to two decimals; None if they are open, all or some of them."""
    if problem is None or problem.verdict is Verdict.INFRA_ERROR or not problem.points.decided:
        return None
    return None if gaps(problem) else round(problem.points.earned, _DECIMALS)


def note(record: Record | None) -> str:
    """Remarks beside the numbers, in one line."""
    return "; ".join(dict.fromkeys(_notes(record)))


def _notes(record: Record | None) -> Iterator[str]:
    if record is None:
        yield PENDING
        return
    harmless = {Verdict.PASS, Verdict.AMBIGUOUS, Verdict.NOT_MEASURED}
    messages = [
        _reason(problem) for problem in record.problems if problem.verdict not in harmless or gaps(problem)
    ]
    for message in (*record.errors, *record.submission.notes, *messages):
        if message:
            yield line(message.partition("\n")[0]).removesuffix(".")


def _reason(problem: ProblemResult) -> str:
    """Why a problem got no points or is undecided, or what its message is."""
    explained = problem.message or (problem.points.earned and not gaps(problem))
    why = "" if explained else next(iter(causes(problem)), "")
    return f"{problem.title}: {why}" if why else problem.message


def shown(points: float | None) -> str:
    """Points for people; blank where they are open."""
    return "" if points is None else f"{points:.{_DECIMALS}f}"
