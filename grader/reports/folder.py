"""The records of a folder, and the reports that lie beside them.

DIR/NAME/result.json   the record of a submission
DIR/NAME/report.html   its page, for the student
DIR/gradebook.csv      all of them as a table
DIR/index.html         the class, for staff
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from grader.records.record import NewerError, RecordError, read, write_text
from grader.reports.gradebook import gradebook
from grader.reports.pages import class_page, submission_page
from grader.reports.views import view

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grader.records.record import Record

RECORD = "result.json"
REPORT = "report.html"
GRADEBOOK = "gradebook.csv"
INDEX = "index.html"


def read_records(path: Path) -> tuple[dict[str, Record], dict[str, str]]:
    """The records of ``path``, a record or a folder of them, and why others cannot be read, by submission.

    Raises:
        RecordError: none can be read, or one is of a newer major version, which an update helps all of.
    """
    if path.is_file():
        record = read(path)
        return {record.submission.name: record}, {}
    places = (folder / RECORD for folder in sorted(path.glob("*")) if folder.is_dir())
    # A folder that may not be entered may hold one: to read it tells why it is left out.
    found = [place for place in places if not os.access(place.parent, os.X_OK) or place.exists()]
    if not found:
        raise RecordError(
            f"{path} holds no record. Name the folder that grader batch --out wrote, or the file of "
            "grader grade --json."
        )
    records, damaged = {}, {}
    for place in found:
        try:
            records[place.parent.name] = read(place)
        except NewerError:
            raise
        except RecordError as error:
            damaged[place.parent.name] = str(error)
    if not records:
        raise RecordError("\n".join(damaged.values()))
    return records, damaged


def write_pages(
    folder: Path,
    results: Mapping[str, Record | None],
    title: str,
    *,
    names: bool = True,
    staff: bool = False,
    aliases: Mapping[str, str] | None = None,
) -> None:
    """Write the page of each submission, the page of the class and, with names, the gradebook.

    Args:
        folder: is made, with a folder for each submission.
        results: the records by submission, None for one without a result.
        title: the assignment's.
        names: whether the page of the class is for staff, who see everybody's.
        staff: whether the pages of submissions are for staff.
        aliases: what a submission is called on the speed board.

    Raises:
        OSError: a folder cannot be made.
        RecordError: a page cannot be written.
    """
    for name, record in results.items():
        if record is not None:
            (folder / name).mkdir(parents=True, exist_ok=True)
            write_text(submission_page(view(record, staff=staff), title), folder / name / REPORT)
    links = {name: f"{name}/{REPORT}" for name, record in results.items() if record}
    write_text(class_page(results, title, staff=names, aliases=aliases, links=links), folder / INDEX)
    if names:
        write_text(gradebook(results), folder / GRADEBOOK)
