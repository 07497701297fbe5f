"""Teams, of which one submission counts for all: a table beside the records that people write.

A submission is a team's if it has the name of the team or of one of its students.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from grader.batch.tables import TableError, lines

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
    teams: dict[str, list[str]] = {}
    team_of: dict[str, str] = {}
    for position, cells in lines(folder / FILE, COLUMNS, COLUMNS, COLUMNS, optional=True):
        team, student = cells["team"], cells["student"]
        if student in team_of:
            raise TableError(f"{position}: {student} is in {team_of[student]} already.")
        team_of[student] = team
        teams.setdefault(team, []).append(student)
    return Teams({team: tuple(students) for team, students in teams.items()})
