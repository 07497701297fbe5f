"""Points that people give: those of a problem in place of what was graded, a bonus, a comment.

They stand in a table beside the records, which the grader reads for every report and never writes: grading
again loses none of them. Records keep the points of the work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.assignments.rules import nearest
from grader.batch.tables import TableError, lines
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from grader.records.record import ProblemResult, Record

FILE = "points.csv"
COLUMNS = ["submission", "problem", "points", "comment", "by", "date"]
NEEDED, FILLED = {"submission", "points"}, {"submission"}


@dataclass(frozen=True)
class Entry:
    """A line of the table.

    Attributes:
        submission: the name in the gradebook.
        problem: whose points these are; empty for points that are added to the score.
        points: None for a comment alone.
        comment: why, for the student.
        signature: who gave them and when, as the table says it.
        position: file and line.
    """

    submission: str
    problem: str
    points: float | None
    comment: str
    signature: str
    position: str

    def told(self, points: str) -> str:
        """A note about these ``points``."""
        signature = f" ({self.signature})" if self.signature else ""
        return f"by hand{signature}: {'; '.join(filter(None, (points, self.comment)))}"


@dataclass(frozen=True)
class ByHand:
    """All lines of the table, by submission."""

    entries: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)

    def replaced(self, name: str, record: Record) -> Record:
        """The record of a submission with points of problems by hand, and all comments as notes.

        Raises:
            TableError: it has no such problem, or the line gives more points than it has.
        """
        problems = {problem.id: problem for problem in record.problems}
        notes = []
        for entry in self.entries.get(name, ()):
            if entry.problem and entry.problem not in problems:
                raise TableError(
                    f"{entry.position}: there is no problem {entry.problem!r}."
                    f"{nearest(entry.problem, list(problems))}"
                )
            if not entry.problem or entry.points is None:
                continue
            before = problems[entry.problem]
            problems[entry.problem] = _given(before, entry.points)
            graded = f" instead of {before.points.earned:.2f}" if before.points.decided else ""
            notes.append(entry.told(f"{before.title} has {entry.points:.2f} points{graded}"))
        if not notes:
            return record
        listed = list(problems.values())
        score = record.score.model_copy(
            update={
                "earned": round(sum(problem.points.earned for problem in listed), 2),
                "decided": round(sum(problem.points.decided for problem in listed), 2),
            }
        )
        failed = any(problem.verdict is Verdict.INFRA_ERROR for problem in listed)
        update = {"problems": listed, "score": score, "error": record.error if failed else None}
        return with_notes(record.model_copy(update=update), notes)

    def added(self, name: str, record: Record) -> Record:
        """The record of a submission with a bonus, beyond what there is to earn if need be, and comments."""
        entries = [entry for entry in self.entries.get(name, ()) if not entry.problem or entry.points is None]
        bonus = sum(entry.points or 0.0 for entry in entries)
        notes = [
            entry.told("" if entry.points is None else f"{entry.points:+.2f} points") for entry in entries
        ]
        earned = round(max(0.0, record.score.earned + bonus), 2)
        score = record.score.model_copy(update={"earned": earned})
        return with_notes(record.model_copy(update={"score": score}), notes)

    def unknown(self, names: Iterable[str]) -> list[str]:
        """A sentence for each submission of the table that is none of ``names``."""
        listed = list(names)
        return [
            f"{entries[0].position}: there is no submission {name!r}.{nearest(name, listed)}"
            for name, entries in self.entries.items()
            if name not in listed
        ]


def with_notes(record: Record, notes: list[str]) -> Record:
    """The record with further notes on the submission."""
    submission = record.submission
    return record.model_copy(
        update={"submission": submission.model_copy(update={"notes": [*submission.notes, *notes]})}
    )


def read(folder: Path) -> ByHand:
    """The table in the folder of the records; an empty one where there is none.

    Raises:
        TableError: it is no such table.
    """
    entries: dict[str, list[Entry]] = {}
    for position, cells in lines(folder / FILE, COLUMNS, NEEDED, FILLED, optional=True):
        entry = _entry(cells, position)
        same = entries.setdefault(entry.submission, [])
        if entry.problem and entry.problem in [other.problem for other in same]:
            raise TableError(f"{entry.position}: {entry.problem} of {entry.submission} has points twice.")
        same.append(entry)
    return ByHand({name: tuple(same) for name, same in entries.items()})


def _entry(cells: Mapping[str, str], position: str) -> Entry:
    points = None
    if text := cells["points"]:
        try:
            points = float(text.replace(",", "."))
        except ValueError as error:
            raise TableError(f"{position}: {text!r} is no number of points. Write it as 7.5.") from error
        if not math.isfinite(points) or (points < 0 and cells.get("problem")):
            raise TableError(f"{position}: {text} cannot be the points of a problem. Write 0 or more.")
    elif not cells.get("comment"):
        raise TableError(f"{position}: neither points nor a comment.")
    signature = ", ".join(filter(None, (cells.get("by", ""), cells.get("date", ""))))
    problem, comment = cells.get("problem", ""), cells.get("comment", "")
    return Entry(cells["submission"], problem, points, comment, signature, position)


def _given(problem: ProblemResult, points: float) -> ProblemResult:
    """The problem with these points, all of which are decided now."""
    decided = problem.points.model_copy(update={"earned": points, "decided": problem.points.possible})
    faulty = problem.verdict is Verdict.INFRA_ERROR
    correctness = problem.correctness.model_copy(
        update={"cases": [case.model_copy(update={"gaps": []}) for case in problem.correctness.cases]}
    )
    return problem.model_copy(
        update={
            "points": decided,
            "correctness": correctness,
            "verdict": Verdict.NOT_MEASURED if faulty else problem.verdict,
        }
    )
