"""Grades for Moodle: an import must not be aborted by an unknown user or a grade above the maximum."""

from __future__ import annotations

import csv
import io

import pytest
import report_samples as samples

from grader.reports.moodle import RosterError, grades

ROSTER = (
    "\ufeffFirst name,Last name,Username,Email address,ID number\n"
    "Jane,Doe,jdoe,jane@uni.edu,1001\nZoë,Müller,zm,zoe@uni.edu,1002\nZoë,Müller,zm2,zoe2@uni.edu,1003\n"
)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def test_only_users_of_the_roster_get_a_row() -> None:
    results = {"jdoe": samples.record(), "stranger": samples.record(), "Zoë Müller": samples.record()}
    found = grades(results, "HW3", ROSTER)
    (row,) = rows(found.text)
    assert (row["username"], row["email"], row["idnumber"], row["HW3"]) == (
        "jdoe",
        "jane@uni.edu",
        "1001",
        "12.00",
    )
    assert "LayerNorm forward: 0.00 of 12.00 (Two threads use the same shared" in row["feedback"]
    assert any("left out: Zoë Müller; stranger" in notice for notice in found.notices)


@pytest.mark.parametrize(
    "name", ["jdoe", "JANE@uni.edu", "1001", "jane doe", "Jane Doe_77_assignsubmission_file"]
)
def test_a_user_is_known_by_any_key(name: str) -> None:
    (row,) = rows(grades({name: samples.record()}, "HW3", ROSTER).text)
    assert row["username"] == "jdoe"


def test_the_grading_worksheet_tells_namesakes_apart() -> None:
    worksheet = (
        "Identifier,Full name,Email address,Status,Grade\n"
        "Participant 77,Zoë Müller,a@uni.edu,,\nParticipant 78,Zoë Müller,b@uni.edu,,\n"
    )
    (row,) = rows(grades({"Zoë Müller_78_assignsubmission_file": samples.record()}, "HW3", worksheet).text)
    assert row["email"] == "b@uni.edu"


def test_without_a_score_there_is_no_row() -> None:
    found = grades({"jdoe": samples.record("x", samples.failed_machine()), "max": None}, "HW3")
    assert rows(found.text) == []
    assert any("no score yet" in notice for notice in found.notices)


def test_a_damaged_archive_has_a_blank_grade_and_its_reason() -> None:
    found = grades({"jdoe": samples.unreadable()}, "HW3")
    (row,) = rows(found.text)
    assert row["HW3"] == ""
    assert row["feedback"] == "not graded: hw3.zip is not an archive or is damaged. Pack it again."
    assert any("a blank grade, with the reason as feedback: jdoe (" in notice for notice in found.notices)


def test_points_beyond_the_maximum_are_cut_as_moodle_takes_none() -> None:
    beyond = samples.record("x", score={"earned": 42, "decided": 40, "possible": 40})
    found = grades({"jdoe": beyond}, "HW3")
    assert rows(found.text)[0]["HW3"] == "40.00"
    assert "more points than there are, so written as the maximum: jdoe" in found.notices


def test_grades_stay_below_the_maximum_of_the_site() -> None:
    points = {"earned": 150, "decided": 200, "possible": 200}
    (row,) = rows(grades({"jdoe": samples.record("x", samples.problem(points=points))}, "HW3").text)
    assert row["HW3"] == "75.00"


WORKSHEET = (
    "Identifier,Full name,Email address,Status,Grade,Maximum Grade\nParticipant 77,Doe,a@uni.edu,,,{}\n"
)


def test_grades_are_scaled_to_the_maximum_of_the_worksheet_where_asked() -> None:
    results = {"a@uni.edu": samples.record("a")}
    for scale, grade in ((True, "3.00"), (False, "12.00")):
        (row,) = rows(grades(results, "HW3", WORKSHEET.format("10.00"), scale=scale).text)
        assert row["HW3"] == grade
    for roster in (None, ROSTER, WORKSHEET.format("-")):
        with pytest.raises(RosterError, match="no maximum grade to scale to"):
            grades(results, "HW3", roster, scale=True)


def test_the_feedback_gives_the_reason_of_a_zero() -> None:
    lost = samples.problem(
        verdict="FAIL",
        points={"earned": 0, "decided": 12, "possible": 20},
        message="softmax_kernel.cu is missing.",
    )
    (row,) = rows(grades({"jdoe": samples.record("jdoe", lost)}, "HW3").text)
    assert row["feedback"] == "Softmax forward: 0.00 of 12.00 (softmax_kernel.cu is missing)"


def test_no_cell_is_a_formula() -> None:
    text = grades({"=1+1": samples.record("x", samples.problem(title="=cmd"))}, "=HW3").text
    assert not [cell for row in csv.reader(io.StringIO(text)) for cell in row if cell.startswith("=")]


def test_a_roster_without_a_known_column_is_refused() -> None:
    with pytest.raises(RosterError, match="none of the columns Username"):
        grades({}, "HW3", "Vorname;Nachname\n")
