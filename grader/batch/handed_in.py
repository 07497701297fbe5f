"""When each submission was handed in, and by whom: what lateness takes off, and which of several counts.

A table that an instructor exports or writes says it. The time of a file never does: a student sets it, or
whatever unpacked it. The table and the rules that it meets are kept beside the records, so that every later
report follows them. Records keep the points of the work itself.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from grader.assignments.rules import Attempts, Deadline, Rules
from grader.batch.by_hand import ByHand, with_notes
from grader.batch.tables import TableError, lines
from grader.batch.teams import Teams
from grader.records.record import write_text
from grader.reports.gradebook import totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from grader.batch.regrade import Regraded
    from grader.records.record import Record

FILE = ".submitted.json"
COLUMNS = ["submission", "submitted", "student"]
UNKNOWN = "nothing says when it was handed in: nothing is taken off"


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True)


class Attempt(_Kept):
    """A submission: whose it is, and when it was handed in, where the table says it."""

    student: str
    submitted: AwareDatetime | None


class HandedIn(_Kept):
    """All submissions of the table, and the rules that they meet."""

    deadline: Deadline | None
    attempts: Attempts
    submissions: dict[str, Attempt]


@dataclass(frozen=True)
class Settled:
    """What the tables of a class show.

    Attributes:
        results: the records by submission, with what lateness takes off; None for one without a result.
        superseded: submissions of students of whom another one counts.
        students: who gets the points of each submission.
    """

    results: Mapping[str, Record | None]
    superseded: frozenset[str] = frozenset()
    students: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def kept(folder: Path) -> HandedIn | None:
    """What is kept in the folder of the records; None if no table was named so far.

    Raises:
        TableError: it cannot be read.
    """
    path = folder / FILE
    try:
        return HandedIn.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise TableError(f"{path} cannot be read. Remove it, and name the table by --submitted.") from error


def renew(folder: Path, rules: Rules, table: Path | None) -> HandedIn | None:
    """Keep what ``table`` says, or an earlier one said, with the rules as they are now.

    Raises:
        TableError: the table is wrong, or lacks what the rules need.
        RecordError: it cannot be kept.
    """
    before = kept(folder)
    if table is not None:
        submissions = _read(table)
    elif before is not None:
        submissions = before.submissions
    else:
        return None
    after = HandedIn(deadline=rules.deadline, attempts=rules.attempts, submissions=submissions)
    _check(after, folder / FILE if table is None else table)
    if after != before:
        write_text(after.model_dump_json(indent=1) + "\n", folder / FILE)
    return after


def settled(
    results: Mapping[str, Record | None],
    handed_in: HandedIn | None,
    by_hand: ByHand | None = None,
    teams: Teams | None = None,
    regraded: Regraded | None = None,
) -> Settled:
    """The records as the rules of the class, points by hand and teams have it.

    Lateness takes off of what a problem has by hand, and not of a bonus.

    Raises:
        TableError: points are of a problem that is not there, or nothing says which of several submissions of
            a team counts.
    """
    points, groups = by_hand or ByHand(), teams or Teams()
    after = {name: record and points.replaced(name, record) for name, record in results.items()}
    if handed_in is not None:
        after = {name: record and _after(record, name, handed_in) for name, record in after.items()}
    after = {name: record and points.added(name, record) for name, record in after.items()}
    if regraded is not None:
        after = {name: record and regraded.noted(name, record) for name, record in after.items()}
    attempts = {} if handed_in is None else handed_in.submissions
    owners = {name: groups.of(attempts[name].student if name in attempts else name) for name in after}
    superseded: dict[str, str] = {}
    for owner, mine in _by_student(owners).items():
        several = [name for name in mine if name in attempts or owner in groups.students]
        if len(several) < 2:
            continue
        counts = max(several, key=_ranked(owner, several, after, handed_in))
        for name in set(several) - {counts}:
            superseded[name] = counts
            if handed_in is not None and (record := after[name]):
                note = f"does not count: the {handed_in.attempts} of several is {counts}"
                after[name] = _noted(record, note)
    students = {name: groups.students.get(owner, (owner,)) for name, owner in owners.items()}
    for name, owner in owners.items():
        if owner in groups.students and name not in superseded and (record := after[name]):
            after[name] = _noted(record, f"counts for {', '.join(students[name])}")
    return Settled(after, frozenset(superseded), students)


def _ranked(
    owner: str, names: Sequence[str], results: Mapping[str, Record | None], handed_in: HandedIn | None
) -> Callable[[str], tuple[float, float]]:
    """By what the one that counts of several submissions is the largest.

    Raises:
        TableError: nothing says when they were handed in, and it is needed.
    """
    attempts = {} if handed_in is None else handed_in.submissions
    times = [attempts[name].submitted if name in attempts else None for name in names]
    if handed_in is None or (None in times and handed_in.attempts == "last"):
        raise TableError(
            f"{owner} has several submissions, {', '.join(names)}, and nothing says when each was handed in. "
            "Name the times by --submitted."
        )
    return lambda name: _rank(name, results[name], handed_in)


def _rank(name: str, record: Record | None, handed_in: HandedIn) -> tuple[float, float]:
    """Of several the one with the largest counts: the latest, or the earliest with most points."""
    attempt = handed_in.submissions.get(name)
    submitted = None if attempt is None else attempt.submitted
    moment = 0.0 if submitted is None else submitted.timestamp()
    if handed_in.attempts == "last":
        return moment, 0.0
    points = totals(record).earned
    return -1.0 if points is None else points, -moment


def _after(record: Record, name: str, handed_in: HandedIn) -> Record:
    """The record with the points after what lateness takes off, and a note of it."""
    deadline, attempt = handed_in.deadline, handed_in.submissions.get(name)
    if deadline is None:
        return record
    if attempt is None or attempt.submitted is None:
        return _noted(record, UNKNOWN)
    if not (days := deadline.days_late(attempt.submitted)):
        return record
    share, score = deadline.taken_off(days), record.score
    left = score.model_copy(update={"earned": round(score.earned * (1 - share), 2)})
    late = f"{days} {'day' if days == 1 else 'days'} late"
    note = f"{late}: {share:.0%} of {score.earned:.2f} points are taken off"
    return _noted(record.model_copy(update={"score": left}), note)


def _noted(record: Record, note: str) -> Record:
    return with_notes(record, [note])


def _by_student(students: Mapping[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for name, student in sorted(students.items()):
        found[student].append(name)
    return found


def _check(handed_in: HandedIn, place: Path) -> None:
    """Refuse a table without the times that the rules need."""
    students = _by_student({name: one.student for name, one in handed_in.submissions.items()})
    for name, attempt in handed_in.submissions.items():
        if attempt.submitted is not None:
            continue
        if handed_in.deadline is not None:
            raise TableError(f"{place}: {name} has no time, and the assignment has a deadline. Add it.")
        if handed_in.attempts == "last" and len(students[attempt.student]) > 1:
            raise TableError(
                f"{place}: {name} has no time, and {attempt.student} has several submissions, of which the "
                'last counts. Add it, or write attempts = "best" in assignment.toml.'
            )


def _read(table: Path) -> dict[str, Attempt]:
    found: dict[str, Attempt] = {}
    for place, cells in lines(table, COLUMNS, {"submission"}, {"submission"}):
        name = cells["submission"]
        if name in found:
            raise TableError(f"{place}: {name} stands twice")
        student = cells.get("student") or name
        found[name] = Attempt(student=student, submitted=_moment(cells.get("submitted", ""), place))
    return found


def _moment(text: str, place: str) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise TableError(f"{place}: {text!r} is no time. Write it as 2026-12-01T23:10:00+01:00.") from error
    if moment.tzinfo is None:
        raise TableError(
            f"{place}: {text!r} has no distance from UTC. Write it as 2026-12-01T23:10:00+01:00."
        )
    return moment
