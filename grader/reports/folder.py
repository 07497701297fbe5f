"""Reads the records of a folder and writes the reports beside them.

DIR/NAME/result.json   the record of a submission
DIR/NAME/report.html   its page, for the student
DIR/gradebook.csv      all results as a table
DIR/index.html         the page of the class, for staff
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from grader.records.record import NewerError, RecordError, read, write_text
from grader.reports.gradebook import gradebook
from grader.reports.pages import class_page, submission_page
from grader.reports.views import view

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from grader.records.record import Record

RECORD = "result.json"
REPORT = "report.html"
GRADEBOOK = "gradebook.csv"
INDEX = "index.html"


def read_records(path: Path) -> tuple[dict[str, Record], dict[str, str]]:
    """The records of ``path``, a record or a folder of records, and the errors of unreadable ones, by name.

    Raises:
        RecordError: no record can be read, or one is of a newer major version, so the grader needs an update.
    """
    if path.is_file():
        record = read(path)
        return {record.submission.name: record}, {}
    records, damaged = read_folder(path)
    if not records:
        nothing = (
            f"{path} holds no record. Name the folder that grader batch --out wrote, or the file of "
            "grader grade --json."
        )
        raise RecordError("\n".join(damaged.values()) or nothing)
    return records, damaged


def read_folder(path: Path) -> tuple[dict[str, Record], dict[str, str]]:
    """The records in the folders of ``path``, and the errors of those that cannot be read, by name.

    Raises:
        NewerError: one is of a newer major version: the grader needs an update.
    """
    possible = (folder / RECORD for folder in sorted(path.glob("*")) if folder.is_dir())
    records, damaged = {}, {}
    for file in possible:
        # A closed folder may contain a record: reading it gives the error to report.
        if os.access(file.parent, os.X_OK) and not file.exists():
            continue
        try:
            records[file.parent.name] = read(file)
        except NewerError:
            raise
        except RecordError as error:
            damaged[file.parent.name] = str(error)
    return records, damaged


def write_pages(
    folder: Path,
    results: Mapping[str, Record | None],
    title: str,
    *,
    names: bool = True,
    staff: bool = False,
    aliases: Mapping[str, str] | None = None,
    superseded: Collection[str] = (),
) -> None:
    """Write the page of each submission, the page of the class and, with ``names``, the gradebook.

    Args:
        folder: the folder to write, which is created, with a folder for each submission.
        results: the records by submission, None for one without a result.
        title: title of the assignment.
        names: whether the page of the class is for staff and shows all names.
        staff: whether the pages of submissions are for staff.
        aliases: names of submissions on the speed board.
        superseded: submissions that have a page, and no place in the page of the class and the gradebook.

    Raises:
        OSError: a folder cannot be created.
        RecordError: a page cannot be written.
    """
    for name, record in results.items():
        if record is not None:
            write_page(folder / name, record, title, staff=staff)
    write_tables(folder, results, title, names=names, aliases=aliases, superseded=superseded)


def write_page(folder: Path, record: Record, title: str, *, staff: bool = False) -> None:
    """Write the page of one submission into its ``folder``, which is created; raises as ``write_pages``."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(submission_page(view(record, staff=staff), title), folder / REPORT)


def write_tables(
    folder: Path,
    results: Mapping[str, Record | None],
    title: str,
    *,
    names: bool = True,
    aliases: Mapping[str, str] | None = None,
    superseded: Collection[str] = (),
) -> None:
    """Write what ``write_pages`` writes of the class as a whole."""
    counting = {name: record for name, record in results.items() if name not in superseded}
    if not names:
        counting = {name: record and view(record, staff=False).record for name, record in counting.items()}
    links = {name: f"{name}/{REPORT}" for name, record in counting.items() if record}
    write_text(class_page(counting, title, staff=names, aliases=aliases, links=links), folder / INDEX)
    if names:
        write_text(gradebook(counting), folder / GRADEBOOK)
