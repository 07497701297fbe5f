"""Makes the reports that a command line requests, only from records."""

from __future__ import annotations

import csv
import io
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from grader.processes import leftovers
from grader.records.record import write_bytes, write_text
from grader.reports import canvas, feedback, gradescope, junit, moodle, similarity
from grader.reports.escaping import line
from grader.reports.folder import INDEX, REPORT, write_pages
from grader.reports.pages import leaderboard_page, submission_page
from grader.reports.views import view
from grader.submissions.discovery import discover, parse

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from grader.records.record import Record

CANVAS = "canvas.csv"
ALIASES_TITLE = "submission"  # title of the first column, if the file has titles
_SERVES = {
    "column": ("canvas",),
    "roster": ("moodle", "feedback"),
    "submissions": ("jplag", "feedback"),
    "scale": ("canvas", "moodle"),
}
"""Options that need another option, and which ones do."""


_OPTIONS = {"feedback": "feedback-zip"}
"""What the option for a report is called, where its name is longer."""


class RequestError(Exception):
    """The requested report cannot be made; the message says what to name instead."""


@dataclass(frozen=True)
class ReportRequest:
    """Which reports to make from which records.

    Attributes:
        records: the records by submission.
        path: the folder of the records, or the file of a single record.
        title: title of the assignment.
        superseded: submissions of students of whom another one counts.
        students: who gets the points of each submission, where these are other names.
        damaged: submissions whose record cannot be read; tables show them without a result.
        staff: whether the pages are for staff.
        html: folder for the pages.
        junit: file to write.
        gradescope: file to write, for one record only.
        canvas: the instructor's export from Canvas; the filled one is written to the records' folder.
        column: the assignment in that export.
        scale: whether scores become those of a column with other points.
        moodle: file to write.
        roster: an export from Moodle with its users.
        aliases: a file with a submission and an alias on each line.
        leaderboard: file for the page of speeds by alias.
        feedback: file to write, an archive of the students' pages.
        jplag: folder for the sources, which are taken from ``submissions``.
        submissions: the folder that was graded, for ``jplag`` and for the numbers of Canvas in ``feedback``.
    """

    records: Mapping[str, Record]
    path: Path
    title: str
    superseded: Collection[str] = ()
    students: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    damaged: Collection[str] = ()
    staff: bool = False
    html: Path | None = None
    junit: Path | None = None
    gradescope: Path | None = None
    canvas: Path | None = None
    column: str | None = None
    scale: bool = False
    moodle: Path | None = None
    roster: Path | None = None
    aliases: Path | None = None
    leaderboard: Path | None = None
    feedback: Path | None = None
    jplag: Path | None = None
    submissions: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of the records."""
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def counting(self) -> dict[str, Record]:
        """The records that no other one of the same student supersedes."""
        return {name: record for name, record in self.records.items() if name not in self.superseded}

    @property
    def by_student(self) -> dict[str, Record]:
        """The record that counts of each student, by the name that other systems know."""
        return {
            student: record
            for name, record in self.counting.items()
            for student in self.students.get(name, (name,))
        }

    @property
    def names_none(self) -> bool:
        """Whether no report is requested by name."""
        named = ("html", "junit", "gradescope", "canvas", "moodle", "leaderboard", "feedback", "jplag")
        return not any(getattr(self, report) for report in named)


def run(request: ReportRequest) -> Iterator[str]:
    """Make the reports; yield lines on what was written, and notices.

    If no report is requested by name, the pages and the gradebook in the records' folder are made again. For
    a single record, only its page is made.

    Raises:
        RequestError: an input is missing or not valid.
        RecordError: a report cannot be written.
    """
    _check(request)
    records, staff = request.records, request.staff
    if request.html or request.names_none:
        yield from _pages(request, request.html or request.folder, in_place=request.html is None)
    if request.junit:
        shown = [view(record, staff=staff) for record in records.values()]
        yield _written(request.junit, junit.junit(shown))
    if request.gradescope:
        if len(records) != 1:
            raise RequestError(
                f"--gradescope takes one record, and there are {len(records)}. Name one of them."
            )
        (record,) = records.values()
        yield _written(request.gradescope, gradescope.results(view(record, staff=staff)))
    yield from _tables(request)
    if request.leaderboard:
        aliases = _aliases(request)
        yield from _unknown(aliases, request)
        yield _written(request.leaderboard, leaderboard_page(request.counting, request.title, aliases))
    if request.jplag:
        yield from _similarity(request, request.jplag)


def _tables(request: ReportRequest) -> Iterator[str]:
    """The scores for systems of courses."""
    records, scale = request.by_student, request.scale
    if request.canvas:
        try:
            export = _read(request.canvas, exactly=True)
            merged = canvas.merge(export, records, request.column, scale=scale)
        except canvas.ExportError as error:
            raise RequestError(f"{request.canvas}: {error}") from error
        yield from merged.notices
        yield _written(request.folder / CANVAS, merged.text)
    if request.moodle:
        try:
            roster = None if request.roster is None else _read(request.roster)
            for_students = {name: view(record, staff=False).record for name, record in records.items()}
            grades = moodle.grades(for_students, request.title, roster, scale=scale)
        except moodle.RosterError as error:
            raise RequestError(f"{request.roster or '--moodle'}: {error}") from error
        yield from grades.notices
        yield _written(request.moodle, grades.text)
    if request.feedback:
        yield from _feedback(request, request.feedback)


def _feedback(request: ReportRequest, out: Path) -> Iterator[str]:
    """The pages of students, as Moodle and Canvas take them."""
    shown = {id(record): view(record, staff=False) for record in request.records.values()}
    pages: dict[str, str | None] = {
        student: submission_page(shown[id(record)], request.title)
        for student, record in request.by_student.items()
    }
    pages |= dict.fromkeys(request.damaged)
    try:
        roster = None if request.roster is None else _read(request.roster)
        made = feedback.archive(pages, _numbered(request), roster)
    except moodle.RosterError as error:
        raise RequestError(f"{request.roster}: {error}") from error
    yield from made.notices
    write_bytes(made.archive, out)
    yield f"wrote {out}"


def _numbered(request: ReportRequest) -> dict[str, int]:
    """The number of an attachment of each student, which in a team may be another one's."""
    numbers = _attachments(request.submissions)
    return {
        student: numbers.get(student) or numbers[name]
        for name in request.counting
        for student in request.students.get(name, (name,))
        if (student in numbers or name in numbers) and feedback.of_canvas(student)
    }


def _attachments(folder: Path | None) -> dict[str, int]:
    """The number of the newest attachment of each student in what was unpacked of Canvas's download."""
    if folder is None:
        return {}
    try:
        files = [attachment for path in folder.iterdir() if (attachment := parse(path)) and attachment.number]
    except OSError as error:
        raise RequestError(f"{error.filename}: {error.strerror}.") from error
    return {each.student: each.number for each in sorted(files, key=lambda each: each.number)}


def _check(request: ReportRequest) -> None:
    """Reject an option that would have no effect, or would show students what only staff may see."""
    for option, reports in _SERVES.items():
        if getattr(request, option) and not any(getattr(request, report) for report in reports):
            needed = " or --".join(_OPTIONS.get(report, report) for report in reports)
            raise RequestError(f"--{option} does nothing without --{needed}. Add that option, too.")
    if request.leaderboard and not request.aliases:
        raise RequestError(
            "--leaderboard shows only those who asked for it, by other names. Give these with --aliases CSV."
        )
    if request.aliases and not (request.html or request.names_none or request.leaderboard):
        raise RequestError("--aliases does nothing without --html. Add that option, too.")
    if request.staff and request.names_none:
        raise RequestError(
            f"--staff needs --html DIR: the pages in {request.folder} are for students. Name another folder."
        )


def _pages(request: ReportRequest, folder: Path, *, in_place: bool) -> Iterator[str]:
    records, title, staff = request.records, request.title, request.staff
    results = {**records, **dict.fromkeys(request.damaged)}
    aliases = _aliases(request)
    yield from _unknown(aliases, request)
    names = staff or in_place
    try:
        if request.path.is_dir():
            write_pages(
                folder,
                results,
                title,
                names=names,
                staff=staff,
                aliases=aliases,
                superseded=request.superseded,
            )
        else:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"{error.filename} cannot be created: {error.strerror}.") from error
    if request.path.is_dir():
        yield f"wrote {len(records)} pages and {folder / INDEX}"
        return
    for record in records.values():
        yield _written(folder / REPORT, submission_page(view(record, staff=staff), title))


def _similarity(request: ReportRequest, out: Path) -> Iterator[str]:
    if request.submissions is None:
        raise RequestError("--jplag needs --submissions FOLDER, because records contain no sources.")
    if out.exists() and any(out.iterdir()):
        raise RequestError(f"{out} is not empty. Name a new folder.")
    files = sorted({file for record in request.records.values() for file in record.submission.files})
    try:
        discovery = discover(request.submissions, files)
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as scratch:
            left_out = similarity.export(discovery.entries, files, out, Path(scratch))
    except OSError as error:
        raise RequestError(f"{error.filename}: {error.strerror}.") from error
    yield from (f"left out: {reason}" for reason in discovery.skipped)
    yield from (f"left out {name}: {reason}" for name, reason in left_out.items())
    yield f"wrote {len(discovery.entries) - len(left_out)} submissions to {out}"


def _unknown(aliases: Mapping[str, str], request: ReportRequest) -> Iterator[str]:
    """A notice of the aliases that are of no submission."""
    names = {*request.records, *request.damaged, ALIASES_TITLE}
    if unknown := sorted(aliases.keys() - names):
        yield f"there is no such submission, so its alias is not used: {', '.join(map(line, unknown))}"


def _aliases(request: ReportRequest) -> dict[str, str]:
    """The alias of each submission that has one."""
    path = request.aliases
    if path is None:
        return {}
    rows = [row for row in csv.reader(io.StringIO(_read(path), newline="")) if row]
    if any(len(row) != 2 for row in rows):
        raise RequestError(
            f"{path}: each line has to be a submission and its alias, with a comma between them."
        )
    return {name.strip(): alias.strip() for name, alias in rows if alias.strip()}


def _read(path: Path, *, exactly: bool = False) -> str:
    """The text of a file, with ``exactly`` including its byte order mark."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.") from error
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"{path} is not in UTF-8, as exports are. Perhaps a spreadsheet has saved it. Export it again."
        ) from error
    return text if exactly else text.removeprefix("\ufeff")


def _written(path: Path, text: str) -> str:
    write_text(text, path)
    return f"wrote {path}"
