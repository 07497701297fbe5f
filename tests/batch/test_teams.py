"""One submission of a team counts for all of its students."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from reports import report_samples as samples

from grader.assignments.rules import Rules
from grader.batch.handed_in import renew, settled
from grader.batch.tables import TableError
from grader.batch.teams import FILE, read
from grader.reports.request import ReportRequest

if TYPE_CHECKING:
    from pathlib import Path

    from grader.batch.handed_in import HandedIn

TEAMS = "team,student\nteam-4,ada\nteam-4,ben\nteam-5,cleo\n"


def handed_in(folder: Path, attempts: str) -> HandedIn:
    problem = {"id": "p", "title": "P", "correctness": 12.0}
    rules = Rules.model_validate({"id": "a", "title": "A", "problems": [problem], "attempts": attempts})
    table = folder / "times.csv"
    table.write_text("submission,submitted\nada,2026-12-01T10:00:00Z\nben,2026-12-02T10:00:00Z\n")
    times = renew(folder, rules, table)
    assert times is not None
    return times


@pytest.mark.parametrize("name", ["team-4", "ben"])
def test_a_submission_counts_for_all_students_of_its_team(tmp_path: Path, name: str) -> None:
    (tmp_path / FILE).write_text(TEAMS)
    results = {name: samples.record(name), "dora": samples.record("dora")}
    shown = settled(results, None, None, read(tmp_path))
    request = ReportRequest(
        {key: record for key, record in shown.results.items() if record},
        tmp_path,
        "HW",
        students=shown.students,
    )
    assert request.by_student.keys() == {"ada", "ben", "dora"}
    assert request.by_student["ada"] == request.by_student["ben"]
    assert request.by_student["ada"].submission.notes == ["counts for ada, ben"]
    assert request.by_student["dora"].submission.notes == []


@pytest.mark.parametrize(("attempts", "counts", "other"), [("last", "ben", "ada"), ("best", "ada", "ben")])
def test_of_several_submissions_of_a_team_one_counts(
    tmp_path: Path, attempts: str, counts: str, other: str
) -> None:
    (tmp_path / FILE).write_text(TEAMS)
    results = {
        "ada": samples.record("ada", samples.problem()),
        "ben": samples.record("ben", samples.raced()),
    }
    shown = settled(results, handed_in(tmp_path, attempts), None, read(tmp_path))
    assert shown.superseded == {other}
    assert shown.students[counts] == ("ada", "ben")
    assert f"does not count: the {attempts} of several is {counts}" in str(shown.results[other])


def test_without_times_several_submissions_of_a_team_are_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(TEAMS)
    results = {"ada": samples.record("ada"), "team-4": samples.record("team-4")}
    with pytest.raises(TableError, match=r"team-4 has several submissions, ada, team-4, .* --submitted"):
        settled(results, None, None, read(tmp_path))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("team,students\n", r"unknown column 'students'\. Did you mean 'student'"),
        ("team\n", "the first line has to name its columns: team, student"),
        ("team,student\na,\n", r"teams\.csv:2: not a line of team, student"),
        (f"{TEAMS}team-5,ada\n", r"teams\.csv:5: ada is in team-4 already"),
    ],
)
def test_a_wrong_table_of_teams_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(TableError, match=told):
        read(tmp_path)
