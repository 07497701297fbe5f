"""The gradebook of Canvas: the instructor's own export with one column filled, all else byte for byte.

Canvas matches a student by ``ID``, then by the SIS columns, then by name, and takes a column whose title it
does not know for a new assignment: so no row and no column is added, and no other cell is touched.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.reports.escaping import line
from grader.reports.gradebook import totals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.records.record import Record

_POINTS = "points possible"
_READ_ONLY = "(read only)"
_EXCUSED = "ex"
_TITLE = re.compile(r"(?P<title>.*) \((?P<id>\d+)\)")
_DOWNLOAD = re.compile(r"(?P<name>\w+?)_(?P<user>\d+)")
_LISTED = 20  # names in a notice


class ExportError(Exception):
    """The file is no export of a gradebook, or which column to fill is not clear; the message says what."""


@dataclass(frozen=True)
class Merged:
    """The export with its column filled, and what a person should know of it."""

    text: str
    notices: tuple[str, ...]


@dataclass
class _Cell:
    raw: str
    end: str  # the delimiter, the end of the line, or nothing at the end of the file

    @property
    def text(self) -> str:
        raw = self.raw.removeprefix("\ufeff").strip()
        return raw[1:-1].replace('""', '"').strip() if raw.startswith('"') else raw


def merge(export: str, results: Mapping[str, Record | None], column: str | None = None) -> Merged:
    """Fill the scores of ``results`` into ``export``, the text of a gradebook that Canvas wrote.

    A submission belongs to the row whose ``ID`` and name Canvas put into the name of its download
    (``doejane_1001``); else to the one whose SIS login, SIS id, id or name it is called by.

    Args:
        export: the file with its byte order mark and line ends.
        results: the records by submission, None for one without a result.
        column: title, title with id, or id of the assignment; None if the export has only one.

    Raises:
        ExportError: no export of Canvas, no such column, or several.
    """
    rows = _rows(export)
    header = [cell.text for cell in rows[0]] if rows else []
    if len(header) < 4 or "Student" not in header[0] or "ID" not in header or "Section" not in header:
        raise ExportError(
            "this is no gradebook of Canvas: its first line has to name Student, ID and Section. "
            "Export it with Grades > Export."
        )
    points = next((row for row in rows[1:3] if row[0].text.casefold() == _POINTS), None)
    place = _place(header, points, column)
    students = [row for row in rows[1:] if row is not points and _is_student(row, header)]
    matched, notices = _match(results, students, header)
    filled, excused, unknown = 0, [], []
    for number, name in sorted(matched.items()):
        row = students[number]
        score, *_ = totals(results[name])
        if not score:
            unknown.append(name)
        elif row[place].text.casefold() == _EXCUSED:
            excused.append(row[0].text)
        else:
            row[place].raw = score
            filled += 1
    said = [f"{line(header[place])}: filled {filled} of {len(students)} students"]
    said += _said("kept as excused", excused)
    said += _said("no score yet, so left as they were", unknown)
    said += notices
    said += _maximum(points, place, [results[name] for name in matched.values()])
    return Merged("".join(cell.raw + cell.end for row in rows for cell in row), tuple(said))


def _rows(export: str) -> list[list[_Cell]]:
    """Every cell with the very characters that it is written in."""
    head = export.partition("\n")[0]
    delimiter = ";" if head.count(";") > head.count(",") else ","
    pattern = re.compile(
        rf'(?P<raw>\ufeff?(?:"(?:[^"]|"")*"[^{delimiter}\r\n]*|[^"{delimiter}\r\n][^{delimiter}\r\n]*|))'
        rf"(?P<end>{delimiter}|\r\n|\r|\n|\Z)"
    )
    rows: list[list[_Cell]] = [[]]
    at = 0
    while at < len(export):
        found = pattern.match(export, at)
        if not found:
            number = export.count("\n", 0, at) + 1
            raise ExportError(f"line {number} is no CSV: a quotation mark is not closed.")
        rows[-1].append(_Cell(found["raw"], found["end"]))
        if found["end"] != delimiter:
            rows.append([])
        at = found.end()
    if rows[-1]:
        rows[-1].append(_Cell("", ""))  # the file ends behind a delimiter
    return [row for row in rows if row]


def _place(header: Sequence[str], points: Sequence[_Cell] | None, column: str | None) -> int:
    """The column to fill."""
    first = header.index("Section") + 1
    writable = {
        place: header[place]
        for place in range(first, len(header))
        if not (points and place < len(points) and points[place].text.casefold() == _READ_ONLY)
    }
    titles = {place: _TITLE.fullmatch(title) for place, title in writable.items()}
    if column is None:
        found = [place for place, title in titles.items() if title] or list(writable)
    else:
        found = [
            place
            for place, title in writable.items()
            if column == title or ((parts := titles[place]) and column in parts.groups())
        ]
    if len(found) == 1:
        return found[0]
    listed = "; ".join(line(title) for title in writable.values()) or "none"
    what = "several assignments" if column is None else f"no single assignment {column!r}"
    raise ExportError(f"the export has {what}. Name one with --column: {listed}.")


def _is_student(row: Sequence[_Cell], header: Sequence[str]) -> bool:
    return len(row) == len(header) and bool(row[0].text)


def _match(
    results: Mapping[str, Record | None], students: Sequence[Sequence[_Cell]], header: Sequence[str]
) -> tuple[dict[int, str], list[str]]:
    """The submission of each row, by the row's number; and what could not be matched."""
    keys = ("SIS Login ID", "SIS User ID", "ID")
    by_key: dict[str, dict[str, list[int]]] = {key: defaultdict(list) for key in (*keys, "name")}
    for number, row in enumerate(students):
        for key in keys:
            if key in header and (text := row[header.index(key)].text):
                by_key[key][text.casefold()].append(number)
        for name in _names(row[0].text):
            by_key["name"][name].append(number)
    taken: dict[int, list[str]] = defaultdict(list)
    unmatched: list[str] = []
    unclear: list[str] = []
    for submission in sorted(results):
        found = _row(submission, by_key)
        if len(found) == 1:
            taken[found[0]].append(submission)
        else:
            (unclear if found else unmatched).append(submission)
    matched = {number: names[0] for number, names in taken.items() if len(names) == 1}
    twice = [
        f"{students[number][0].text} ({', '.join(names)})" for number, names in taken.items() if names[1:]
    ]
    without = [row[0].text for number, row in enumerate(students) if number not in taken]
    notices = _said("no student has this name or id, so nothing was filled in", unmatched)
    notices += _said("several students have this name, so nothing was filled in", unclear)
    notices += _said("more than one submission, so nothing was filled in", twice)
    notices += _said("no submission, so left as they were", without)
    return matched, notices


def _row(submission: str, by_key: Mapping[str, Mapping[str, list[int]]]) -> list[int]:
    if found := _DOWNLOAD.fullmatch(unicodedata.normalize("NFC", submission)):
        numbers = by_key["ID"].get(found["user"], [])
        return [number for number in numbers if number in by_key["name"].get(_letters(found["name"]), [])]
    for key, rows in by_key.items():
        wanted = _letters(submission) if key == "name" else submission.casefold()
        if numbers := rows.get(wanted, []):
            return numbers
    return []


def _names(student: str) -> set[str]:
    """``Doe, Jane`` as Canvas puts it into the names of downloads, and the other way round."""
    last, comma, first = student.partition(",")
    return {_letters(student), _letters(first + last)} if comma else {_letters(student)}


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFC", name)).casefold()


def _said(what: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return [f"{what}: {'; '.join(map(line, names[:_LISTED]))}{more}"]


def _maximum(points: Sequence[_Cell] | None, place: int, records: Sequence[Record | None]) -> list[str]:
    """A warning where the assignment in Canvas counts something else than what was decided."""
    try:
        maximum = float(points[place].text.replace(",", ".")) if points else None
    except ValueError:
        maximum = None
    decided = sorted({record.score.decided for record in records if record and record.score.decided})
    if maximum is None or not decided or decided == [maximum]:
        return []
    shown = f"{decided[0]:g}" if len(decided) == 1 else f"{decided[0]:g} to {decided[-1]:g}"
    warning = (
        f"the assignment counts {maximum:g} points in Canvas, and {shown} points were decided here: "
        "what was not measured is not in the scores. Grade on a GPU, or set the points in Canvas."
    )
    return [warning]
