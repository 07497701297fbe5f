"""Grades for Moodle's CSV import: one row for each submission that has a score.

One unknown user, or one grade above the item's maximum, aborts a whole import in Moodle. So with a roster,
which the instructor exports from Moodle, only its users get rows.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.reports.escaping import cell, line
from grader.reports.fix_first import causes
from grader.reports.gradebook import earned, shown, totals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from grader.records.record import Record

MAXIMUM = 100.0  # largest grade on a site that does not allow unlimited grades
_FOLDER = re.compile(r"(?P<name>.+?)_(?P<participant>\d+)_assignsubmission_\w+")
_HEADERS = {
    "username": "username",
    "email": "email",
    "email address": "email",
    "idnumber": "idnumber",
    "id number": "idnumber",
    "identifier": "identifier",
    "fullname": "name",
    "full name": "name",
    "firstname": "first",
    "first name": "first",
    "lastname": "last",
    "last name": "last",
    "surname": "last",
    "maximum grade": "maximum",
}


class RosterError(Exception):
    """The roster has no column that identifies users, or none with the points to scale to."""


@dataclass(frozen=True)
class Grades:
    """The text of the file for Moodle, and notices for the instructor."""

    text: str
    notices: tuple[str, ...]


@dataclass(frozen=True)
class _User:
    username: str = ""
    email: str = ""
    idnumber: str = ""
    name: str = ""
    participant: str = ""
    keys: frozenset[str] = frozenset()
    maximum: float | None = None


def grades(
    results: Mapping[str, Record | None], item: str, roster: str | None = None, *, scale: bool = False
) -> Grades:
    """The scores as CSV with the columns username, email, idnumber, ``item`` and feedback.

    Args:
        results: the records by submission, None for one without a result.
        item: name of the grade item.
        roster: the text of an export from Moodle (participants, grades, or the grading worksheet); without
            it, each submission's name is used as a username.
        scale: whether all possible points become the maximum grade that the roster names.

    Raises:
        RosterError: the roster has no known column, or no maximum grade to scale to.
    """
    users = None if roster is None else _users(roster)
    if scale and not (users and all(user.maximum for user in users)):
        raise RosterError(
            "there is no maximum grade to scale to. Give the grading worksheet of the assignment as "
            "--roster, which has the column Maximum Grade, or leave --scale out."
        )
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(["username", "email", "idnumber", cell(item), "feedback"])
    without, unknown, written = [], [], 0
    blank: list[str] = []
    cut: list[str] = []
    for name, record in sorted(results.items()):
        matches = [_User(username=name)] if users is None else _matching(name, users)
        score = totals(record).earned
        if record is None or (score is None and not record.not_graded):
            without.append(name)
        elif len(matches) != 1:
            unknown.append(name)
        else:
            user, possible = matches[0], record.score.possible
            full = user.maximum if scale and user.maximum else min(possible, MAXIMUM)
            grade = "" if score is None else f"{min(score / possible, 1) * full:.2f}"  # "" is no grade
            cut += [name] if score is not None and score > possible else []
            cells = [user.username, user.email, user.idnumber, grade]
            writer.writerow([cell(part) for part in (*cells, "; ".join(_feedback(record)))])
            written += score is not None
            blank += [f"{name} ({record.not_graded})"] if score is None else []
    notices = [f"{item}: wrote {written} grades"]
    if users is None and written:
        notices.append("without --roster, the name of each submission is used as a username of Moodle")
    if cut:
        notices.append(f"more points than there are, so written as the maximum: {'; '.join(map(line, cut))}")
    if blank:
        notices.append(f"a blank grade, with the reason as feedback: {'; '.join(map(line, blank))}")
    if without:
        notices.append(f"no score yet, so left out: {'; '.join(map(line, without))}")
    if unknown:
        notices.append(f"not exactly one user of the roster, so left out: {'; '.join(map(line, unknown))}")
    return Grades(text.getvalue(), tuple(notices))


def participants(names: Iterable[str], roster: str | None = None) -> dict[str, tuple[str, str]]:
    """Full name and number of the participants whose submissions are called so, as far as they are known.

    The name of a downloaded folder has both. Otherwise ``roster``, the grading worksheet, has them.

    Raises:
        RosterError: the roster has no known column.
    """
    known: dict[str, tuple[str, str]] = {}
    others: list[str] = []
    for name in names:
        if match := _FOLDER.fullmatch(name):
            known[name] = match["name"], match["participant"]
        else:
            others.append(name)
    users = _users(roster) if roster is not None and others else []
    for name in others:
        matches = _matching(name, users)
        if len(matches) == 1 and matches[0].participant:
            known[name] = matches[0].name or name, matches[0].participant
    return known


def _users(roster: str) -> list[_User]:
    reader = csv.reader(io.StringIO(roster.removeprefix("\ufeff"), newline=""))
    names = [_HEADERS.get(title.strip().casefold(), "") for title in next(reader, [])]
    if not {"username", "email", "idnumber", "identifier", "name", "last"} & set(names):
        raise RosterError(
            "the roster has none of the columns Username, Email address, ID number, Full name, Identifier. "
            "Export it from Moodle in English."
        )
    return [_user(dict(zip(names, row, strict=False))) for row in reader if any(row)]


def _user(row: Mapping[str, str]) -> _User:
    name = row.get("name") or f"{row.get('first', '')} {row.get('last', '')}"
    participant = row.get("identifier", "").removeprefix("Participant ")
    keys = {_folded(row.get(key, "")) for key in ("username", "email", "idnumber")} | {
        _folded(name),
        participant and f"#{participant}",
    }
    return _User(
        row.get("username", ""),
        row.get("email", ""),
        row.get("idnumber", ""),
        name.strip(),
        participant,
        frozenset(keys - {""}),
        _number(row.get("maximum", "")),
    )


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _matching(submission: str, users: list[_User]) -> list[_User]:
    if match := _FOLDER.fullmatch(submission):
        by_number = [user for user in users if f"#{match['participant']}" in user.keys]
        return by_number or [user for user in users if _folded(match["name"]) in user.keys]
    return [user for user in users if _folded(submission) in user.keys]


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).casefold().split())


def _feedback(record: Record) -> Iterator[str]:
    if record.not_graded:
        yield line(record.not_graded)
    for problem in record.problems:
        if points := shown(earned(problem)):
            why = next(iter(causes(problem)), "")
            yield line(
                f"{problem.title}: {points} of {problem.points.decided:.2f}" + (f" ({why})" if why else "")
            )
