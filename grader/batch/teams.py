"""Teams, of which one submission counts for all: a table beside the records that people write.

A submission is a team's if it has the name of the team or of one of its students.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.assignments.rules import nearest
from grader.batch.tables import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "teams.csv"
COLUMNS = ["team", "student"]


@dataclass(frozen=True)
class Teams:
    """The students of each team."""

    students: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, student: str) -> str:
        """The team of a student, or who is none of any."""
        return next((team for team, students in self.students.items() if student in students), student)


def read(folder: Path) -> Teams:
    """The teams in the folder of the records; none where there is no table.

    Raises:
        TableError: it is no such table.
    """
    table = folder / FILE
    teams: dict[str, list[str]] = {}
    team_of: dict[str, str] = {}
    try:
        with table.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file)
            titles = rows.fieldnames or []
            if unknown := [title for title in titles if title not in COLUMNS]:
                raise TableError(f"{table}: unknown column {unknown[0]!r}.{nearest(unknown[0], COLUMNS)}")
            if set(titles) != set(COLUMNS):
                raise TableError(f"{table}: the first line has to name its columns: {', '.join(COLUMNS)}")
            for row in rows:
                position = f"{table}:{rows.line_num}"
                team, student = ((row[title] or "").strip() for title in COLUMNS)
                if not team or not student or None in row:
                    raise TableError(f"{position}: not a line of {', '.join(titles)}")
                if student in team_of:
                    raise TableError(f"{position}: {student} is in {team_of[student]} already.")
                team_of[student] = team
                teams.setdefault(team, []).append(student)
    except FileNotFoundError:
        return Teams()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TableError(f"{table}: cannot be read: {error}") from error
    return Teams({team: tuple(students) for team, students in teams.items()})
