"""Requests to grade submissions again: each line of a table is worked off once, and reports say the outcome.

The table is the instructor's. What was worked off is kept beside the records, with the points before and
after.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from grader.assignments.rules import nearest
from grader.batch.by_hand import with_notes
from grader.batch.tables import TableError, lines
from grader.records.record import write_text
from grader.reports.gradebook import shown, totals

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from grader.records.record import Record

FILE = ".regraded.json"
COLUMNS = ["submission", "reason", "by", "date"]


class Regrading(BaseModel):
    """A line of the table, and the points before and after; "" where there were none."""

    model_config = ConfigDict(frozen=True)

    submission: str
    reason: str
    by: str = ""
    date: str = ""
    before: str = ""
    after: str = ""

    def asks_as(self, other: Regrading) -> bool:
        """Whether both are the same request."""
        mine, theirs = ((one.submission, one.reason, one.by, one.date) for one in (self, other))
        return mine == theirs

    @property
    def told(self) -> str:
        """A note for reports."""
        signature = ", ".join(filter(None, (self.by, self.date)))
        who = f" ({signature})" if signature else ""
        return (
            f"graded again as asked{who}: {self.reason}: {self.after or 'no'} points, "
            f"{self.before or 'none'} before"
        )


class Regraded(BaseModel):
    """All requests that were worked off, in order."""

    model_config = ConfigDict(frozen=True)

    done: tuple[Regrading, ...] = ()

    def noted(self, name: str, record: Record) -> Record:
        """The record of a submission with what came of requests for it."""
        notes = [request.told for request in self.done if request.submission == name]
        return with_notes(record, notes) if notes else record


def read(folder: Path) -> Regraded:
    """What was worked off in the folder of the records.

    Raises:
        TableError: it cannot be read.
    """
    path = folder / FILE
    try:
        return Regraded.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Regraded()
    except (OSError, ValidationError) as error:
        raise TableError(
            f"{path} cannot be read. Remove it, and all requests of the table are worked off again."
        ) from error


def pending(folder: Path, table: Path, names: Collection[str]) -> list[Regrading]:
    """The requests of ``table`` that were not worked off yet; ``names`` are those of all submissions.

    Raises:
        TableError: it is no such table, or names what is no submission.
    """
    done = read(folder).done
    requests: list[Regrading] = []
    for position, cells in lines(table, COLUMNS, {"submission", "reason"}, {"submission", "reason"}):
        request = Regrading(**cells)
        if request.submission not in names:
            near = nearest(request.submission, list(names))
            raise TableError(f"{position}: there is no submission {request.submission!r}.{near}")
        if not any(request.asks_as(other) for other in (*done, *requests)):
            requests.append(request)
    return requests


def keep(
    folder: Path,
    requests: Collection[Regrading],
    before: Mapping[str, Record | None],
    after: Mapping[str, Record | None],
) -> None:
    """Keep that ``requests`` were worked off, with the points of the work before and after.

    Raises:
        RecordError: there is no room for it.
    """
    worked_off = [
        request.model_copy(
            update={
                "before": shown(totals(before[request.submission]).earned),
                "after": shown(totals(after[request.submission]).earned),
            }
        )
        for request in requests
    ]
    write_text(
        Regraded(done=(*read(folder).done, *worked_off)).model_dump_json(indent=1) + "\n", folder / FILE
    )
