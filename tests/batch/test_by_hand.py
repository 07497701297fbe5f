"""Points by hand are in every table with who gave them and why; records keep the points of the work."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
from reports import report_samples as samples

from grader.assignments.rules import Rules
from grader.batch.by_hand import FILE, read
from grader.batch.handed_in import renew, settled
from grader.batch.tables import TableError
from grader.reports.gradebook import gradebook
from grader.reports.pages import submission_page
from grader.reports.views import view

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import Record

HEADER = "submission,problem,points,comment,by,date\n"


def row(folder: Path, record: Record, lines: str, rules: Rules | None = None) -> dict[str, str]:
    """The row of ``record`` in the gradebook, after the ``lines`` of the table."""
    (folder / FILE).write_text(HEADER + lines)
    times = None
    if rules is not None:
        (folder / "times.csv").write_text("submission,submitted\ndoe,2026-12-03T00:00:00+01:00\n")
        times = renew(folder, rules, folder / "times.csv")
    shown = settled({"doe": record}, times, read(folder))
    (found,) = csv.DictReader(io.StringIO(gradebook(shown.results), newline=""))
    return found


def test_points_of_a_problem_replace_what_was_graded(tmp_path: Path) -> None:
    record = samples.record("doe", samples.problem(), samples.raced())
    found = row(tmp_path, record, "doe,layernorm_forward,9,the race is ours,Ada,2026-12-03\n")
    assert (found["score"], found["decided"], found["layernorm_forward"]) == ("21.00", "32.00", "9.00")
    assert (
        "by hand (Ada, 2026-12-03): LayerNorm forward has 9.00 points instead of 0.00; the race is ours"
        in found["note"]
    )
    assert record.score.earned == 12


def test_a_bonus_may_be_beyond_all_points_and_a_deduction_never_below_none(tmp_path: Path) -> None:
    record = samples.record("doe", samples.problem())
    beyond = row(tmp_path, record, 'doe,,10.5,,,\ndoe,,"1,5",,,\n')
    assert beyond["score"] == "24.00"
    assert beyond["note"] == "by hand: +10.50 points; by hand: +1.50 points"
    assert row(tmp_path, record, "doe,,-50,copied,,\n")["score"] == "0.00"


def test_a_comment_alone_changes_no_points_and_stands_on_the_student_s_page(tmp_path: Path) -> None:
    record = samples.record("doe", samples.problem())
    assert row(tmp_path, record, "doe,,,see me,Ada,\n")["score"] == "12.00"
    shown = settled({"doe": record}, None, read(tmp_path)).results["doe"]
    assert shown is not None
    assert "by hand (Ada): see me" in submission_page(view(shown, staff=False), "HW")


@pytest.mark.parametrize(
    "record",
    [
        samples.unreadable("doe"),
        samples.record("doe", samples.failed_machine("softmax_forward"), error="no nvcc"),
        samples.record("doe", samples.lacking()),
    ],
)
def test_what_was_undecided_is_decided_by_hand(tmp_path: Path, record: Record) -> None:
    assert row(tmp_path, record, "")["score"] == ""
    name = record.problems[0].id
    found = row(tmp_path, record, f"doe,{name},7,,,\n")
    assert (found["score"], found[name]) == ("7.00", "7.00")


def test_lateness_takes_its_share_of_problems_and_not_of_a_bonus(tmp_path: Path) -> None:
    problem = {"id": "p", "title": "P", "correctness": 12.0}
    deadline = {"due": "2026-12-01T23:59:00+01:00", "per_day": 0.25}
    rules = Rules.model_validate({"id": "a", "title": "A", "problems": [problem], "deadline": deadline})
    record = samples.record("doe", samples.problem())
    found = row(tmp_path, record, "doe,softmax_forward,8,,,\ndoe,,3,,,\n", rules)
    assert found["score"] == "7.00"  # half of 8, and 3


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            "doe,softmax,1,,,\n",
            r"points\.csv:2: there is no problem 'softmax'\. Did you mean 'softmax_forward'",
        ),
        ("doe,,many,,,\n", r"points\.csv:2: 'many' is no number of points\. Write it as 7\.5"),
        ("doe,softmax_forward,-1,,,\n", "cannot be the points of a problem"),
        ("doe,,nan,,,\n", "cannot be the points"),
        ("doe,,,,,\n", "neither points nor a comment"),
        (",,1,,,\n", "not a line of submission, problem"),
        (
            "doe,softmax_forward,1,,,\ndoe,softmax_forward,2,,,\n",
            r"csv:3: softmax_forward of doe has points twice",
        ),
    ],
)
def test_a_wrong_table_is_refused_with_its_line(tmp_path: Path, lines: str, told: str) -> None:
    with pytest.raises(TableError, match=told):
        row(tmp_path, samples.record("doe", samples.problem()), lines)


def test_an_unknown_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("submission,points,coment\n")
    with pytest.raises(TableError, match=r"unknown column 'coment'\. Did you mean 'comment'"):
        read(tmp_path)


def test_a_name_that_nobody_has_is_told(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("submission,points\ndoo,1\n")
    (reason,) = read(tmp_path).unknown(["doe"])
    assert reason.endswith("points.csv:2: there is no submission 'doo'. Did you mean 'doe'?")


def test_without_a_table_nothing_changes(tmp_path: Path) -> None:
    record = samples.record("doe")
    assert settled({"doe": record, "new": None}, None, read(tmp_path)).results == {"doe": record, "new": None}
