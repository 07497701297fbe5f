"""All results as one table for a spreadsheet, with a row for each submission; unknown points are blank."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from grader.records.verdict import Verdict
from grader.reports.escaping import cell, line
from grader.reports.fix_first import causes
from grader.reports.gaps import gaps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grader.records.record import ProblemResult, Record

PENDING = "not graded yet"
TOTALS = ("score", "decided", "possible")


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
            *totals(record),
            *(earned(problems.get(problem_id)) for problem_id in ids),
            *(str(problems[problem_id].verdict) if problem_id in problems else "" for problem_id in ids),
            note(record),
        ]
        writer.writerow([cell(text) for text in cells])
    return text.getvalue()


def problem_ids(results: Mapping[str, Record | None]) -> tuple[str, ...]:
    """Every problem that a record has, in the order of the records."""
    records = filter(None, results.values())
    return tuple(dict.fromkeys(problem.id for record in records for problem in record.problems))


def totals(record: Record | None) -> tuple[str, str, str]:
    """Points earned, decided and possible.

    Blank if the machine failed or the simulator could not run what a case reached: the sum would be too
    small.
    """
    if record is None:
        return "", "", ""
    known = record.error is None and all(
        problem.verdict is not Verdict.INFRA_ERROR and not gaps(problem) for problem in record.problems
    )
    score = record.score
    return (
        _number(score.earned) if known and score.decided else "",
        _number(score.decided) if known else "",
        _number(score.possible),
    )


def earned(problem: ProblemResult | None) -> str:
    """The points earned in a problem; blank if they are open, all or some of them."""
    if problem is None or problem.verdict is Verdict.INFRA_ERROR or not problem.points.decided:
        return ""
    if gaps(problem):
        return ""
    return _number(problem.points.earned)


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
    for message in (record.error, record.submission.error, *record.submission.notes, *messages):
        if message:
            yield line(message.partition("\n")[0]).removesuffix(".")


def _reason(problem: ProblemResult) -> str:
    """Why a problem got no points or is undecided, or what its message is."""
    told = problem.message or (problem.points.earned and not gaps(problem))
    why = "" if told else next(iter(causes(problem)), "")
    return f"{problem.title}: {why}" if why else problem.message


def _number(points: float) -> str:
    return f"{points:.2f}"
