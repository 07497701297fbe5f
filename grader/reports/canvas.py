"""Fills one column of the instructor's export from Canvas, and keeps all other bytes.

Canvas matches a student by ``ID``, then by the SIS columns, then by name. It would create an assignment for
a column whose title it does not know. So no row and no column is added, and no other cell changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.reports.escaping import line
from grader.reports.gradebook import note, totals

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
    """The file is not an export of a gradebook, or the column to fill is not clear; see the message."""


@dataclass(frozen=True)
class Merged:
    """The export with its column filled, and notices for the instructor."""

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


def merge(
    export: str, results: Mapping[str, Record | None], column: str | None = None, *, scale: bool = False
) -> Merged:
    """Fill the scores of ``results`` into ``export``, the text of a gradebook that Canvas wrote.

    If the name of a submission comes from a download (``doejane_1001``), it belongs to the row with this
    ``ID`` and name. Otherwise it belongs to the row whose SIS login, SIS id, id or name is its name.

    Args:
        export: the content of the file with its byte order mark and line ends.
        results: the records by submission, None for one without a result.
        column: title, title with id, or id of the assignment; None if the export has only one.
        scale: whether all possible points become the points that the assignment has in Canvas.

    Raises:
        ExportError: this is not an export from Canvas, or the column is missing, not clear, or without points
            to scale to.
    """
    rows = _rows(export)
    header = [cell.text for cell in rows[0]] if rows else []
    if len(header) < 4 or "Student" not in header[0] or "ID" not in header or "Section" not in header:
        raise ExportError(
            "this is not a gradebook of Canvas: its first line has to name Student, ID and Section. "
            "Export it with Grades > Export."
        )
    points = next((row for row in rows[1:3] if row[0].text.casefold() == _POINTS), None)
    index = _index(header, points, column)
    maximum = _maximum(points, index)
    if scale and not maximum:
        raise ExportError(
            f"it does not say how many points {header[index]!r} has, so nothing can be scaled. Leave --scale "
            "out, or give the assignment points in Canvas and export again."
        )
    students = [row for row in rows[1:] if row is not points and _is_student(row, header)]
    matched, notices = _match(results, students, header)
    filled, excused, unknown, zeros = 0, [], [], []
    for number, name in sorted(matched.items()):
        row, record = students[number], results[name]
        score = totals(record).earned
        if record is None or score is None:
            unknown.append(f"{name} ({record.not_graded})" if record and record.not_graded else name)
        elif row[index].text.casefold() == _EXCUSED:
            excused.append(row[0].text)
        else:
            share = maximum / record.score.possible if scale and maximum else 1.0
            row[index].raw = f"{share * score:.2f}"
            filled += 1
            if not score:
                zeros.append(f"{row[0].text} ({note(record)})")
    lines = [f"{line(header[index])}: filled {filled} of {len(students)} students"]
    lines += _notice("kept as excused", excused)
    lines += _notice("no score yet, so left as they were", unknown)
    lines += _notice("no points", zeros)
    lines += notices
    graded = [record for name in matched.values() if (record := results[name])]
    lines += _shortage(maximum, graded) if scale else _warning(maximum, graded)
    return Merged("".join(cell.raw + cell.end for row in rows for cell in row), tuple(lines))


def _rows(export: str) -> list[list[_Cell]]:
    """All cells, each with its original characters."""
    head = export.partition("\n")[0]
    delimiter = ";" if head.count(";") > head.count(",") else ","
    pattern = re.compile(
        rf'(?P<raw>\ufeff?(?:"(?:[^"]|"")*"[^{delimiter}\r\n]*|[^"{delimiter}\r\n][^{delimiter}\r\n]*|))'
        rf"(?P<end>{delimiter}|\r\n|\r|\n|\Z)"
    )
    rows: list[list[_Cell]] = [[]]
    at = 0
    while at < len(export):
        match = pattern.match(export, at)
        if not match:
            number = export.count("\n", 0, at) + 1
            raise ExportError(f"line {number} is not CSV: a quotation mark is not closed.")
        rows[-1].append(_Cell(match["raw"], match["end"]))
        if match["end"] != delimiter:
            rows.append([])
        at = match.end()
    if rows[-1]:
        rows[-1].append(_Cell("", ""))  # the file ends with a delimiter
    return [row for row in rows if row]


def _index(header: Sequence[str], points: Sequence[_Cell] | None, column: str | None) -> int:
    """The index of the column to fill."""
    first = header.index("Section") + 1
    writable = {
        index: header[index]
        for index in range(first, len(header))
        if not (points and index < len(points) and points[index].text.casefold() == _READ_ONLY)
    }
    titles = {index: _TITLE.fullmatch(title) for index, title in writable.items()}
    if column is None:
        candidates = [index for index, title in titles.items() if title] or list(writable)
    else:
        candidates = [
            index
            for index, title in writable.items()
            if column == title or ((parts := titles[index]) and column in parts.groups())
        ]
    if len(candidates) == 1:
        return candidates[0]
    listed = "; ".join(line(title) for title in writable.values()) or "none"
    obstacle = "several assignments" if column is None else f"no single assignment {column!r}"
    raise ExportError(f"the export has {obstacle}. Name one with --column: {listed}.")


def _is_student(row: Sequence[_Cell], header: Sequence[str]) -> bool:
    return len(row) == len(header) and bool(row[0].text)


def _match(
    results: Mapping[str, Record | None], students: Sequence[Sequence[_Cell]], header: Sequence[str]
) -> tuple[dict[int, str], list[str]]:
    """The submission of each row by the row's number, and notices on what could not be matched."""
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
        rows = _matching_rows(submission, by_key)
        if len(rows) == 1:
            taken[rows[0]].append(submission)
        else:
            (unclear if rows else unmatched).append(submission)
    matched = {number: names[0] for number, names in taken.items() if len(names) == 1}
    twice = [
        f"{students[number][0].text} ({', '.join(names)})" for number, names in taken.items() if names[1:]
    ]
    without = [row[0].text for number, row in enumerate(students) if number not in taken]
    notices = _notice("no student has this name or id, so nothing was filled in", unmatched)
    notices += _notice("several students have this name, so nothing was filled in", unclear)
    notices += _notice("more than one submission, so nothing was filled in", twice)
    notices += _notice("no submission, so left as they were", without)
    return matched, notices


def _matching_rows(submission: str, by_key: Mapping[str, Mapping[str, list[int]]]) -> list[int]:
    if match := _DOWNLOAD.fullmatch(unicodedata.normalize("NFC", submission)):
        numbers = by_key["ID"].get(match["user"], [])
        return [number for number in numbers if number in by_key["name"].get(_letters(match["name"]), [])]
    for key, rows in by_key.items():
        text = _letters(submission) if key == "name" else submission.casefold()
        if numbers := rows.get(text, []):
            return numbers
    return []


def _names(student: str) -> set[str]:
    """The letters of a name such as ``Doe, Jane``, in both orders; Canvas uses one in names of downloads."""
    last, comma, first = student.partition(",")
    return {_letters(student), _letters(first + last)} if comma else {_letters(student)}


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFC", name)).casefold()


def _notice(heading: str, names: Sequence[str]) -> list[str]:
    if not names:
        return []
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return [f"{heading}: {'; '.join(map(line, names[:_LISTED]))}{more}"]


def _maximum(points: Sequence[_Cell] | None, index: int) -> float | None:
    """The points of the assignment in Canvas; None if the export does not say."""
    try:
        return float(points[index].text.replace(",", ".")) if points else None
    except ValueError:
        return None


def _warning(maximum: float | None, records: Sequence[Record]) -> list[str]:
    """A warning if the points of the assignment in Canvas differ from the points that were decided."""
    decided = _decided(records)
    if maximum is None or not decided or decided == [maximum]:
        return []
    warning = (
        f"the assignment has {maximum:g} points in Canvas, but {_range(decided)} points were decided here: "
        "scores do not include what was not measured. Grade on a GPU, change the points in Canvas, or scale "
        "the scores to them (--scale)."
    )
    return [warning]


def _shortage(maximum: float | None, records: Sequence[Record]) -> list[str]:
    """A warning if not all points were decided, so that nobody can have all of the column."""
    decided, possible = _decided(records), sorted({record.score.possible for record in records})
    if not decided or decided == possible:
        return []
    warning = (
        f"scores were scaled to {maximum:g} points, but {_range(decided)} of {_range(possible)} points were "
        "decided here: what was not measured counts as not reached. Grade on a GPU for all of them."
    )
    return [warning]


def _decided(records: Sequence[Record]) -> list[float]:
    return sorted({record.score.decided for record in records if record.score.decided})


def _range(points: Sequence[float]) -> str:
    return f"{points[0]:g}" if len(points) == 1 else f"{points[0]:g} to {points[-1]:g}"
