"""An export of Canvas with its scores filled in: one column changes, and nothing else."""

from __future__ import annotations

import csv
import io

import pytest
import report_samples as samples

from grader.reports.canvas import ExportError, merge

COLUMN = "HW3 softmax (4711)"
LINES = (
    "\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Notes,HW2 (4700),HW3 softmax (4711),Final Score",
    ",,,,,,Manual Posting,,",
    "    Points Possible,,,,,,10,24,(read only)",
    '"Doe, Jane",1001,s1,jdoe,CS-A,"said ""hi"", twice",9.5,,91.2',
    '"O\'Neill-Müller, Zoë",1002,s2,zoe@uni.edu,CS-B,,8,,',
    '"Andersson, Alice",1003,s3,alice,"CS-A and CS-C",,,-,',
    '"Missing, Max",1004,s4,max,CS-C,,7,,',
    '"Excused, Eva",1005,s5,eva,CS-C,,7,EX,',
    '"Broken, Ben",1006,s6,ben,CS-B,,,,',
    '"Student, Test",,,9f8e7d,CS-A,,,,',
    "",
)
EXPORT = "\r\n".join(LINES)
RESULTS = {
    "doejane_1001": samples.record(),
    "oneillmüllerzoë_1002": samples.record("z", samples.problem()),
    "alice": samples.record("a", samples.raced("softmax_forward")),
    "excusedeva_1005": samples.record(),
    "ben": samples.record("b", samples.failed_machine()),
    "stranger_4242": samples.record(),
    "doejane_1004": samples.record(),
}


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text, newline="")))


def test_only_the_score_column_changes() -> None:
    before, after = table(EXPORT), table(merge(EXPORT, RESULTS, "HW3 softmax").text)
    place = before[0].index(COLUMN)
    scores = {row[0]: row[place] for row in after[3:]}
    assert scores == {
        "Doe, Jane": "12.00",
        "O'Neill-Müller, Zoë": "12.00",
        "Andersson, Alice": "0.00",
        "Missing, Max": "",
        "Excused, Eva": "EX",
        "Broken, Ben": "",
        "Student, Test": "",
    }
    for row in (*before, *after):
        del row[place : place + 1]
    assert before == after


def test_every_other_character_stays() -> None:
    merged = merge(EXPORT, RESULTS, "4711").text
    expected = EXPORT.replace('twice",9.5,,', 'twice",9.5,12.00,').replace("CS-B,,8,,", "CS-B,,8,12.00,")
    assert merged == expected.replace('"CS-A and CS-C",,,-,', '"CS-A and CS-C",,,0.00,')
    assert merge(merged, RESULTS, COLUMN).text == merged


def test_without_results_the_export_comes_back() -> None:
    assert merge(EXPORT, {}, COLUMN).text == EXPORT


def test_what_was_not_filled_in_is_said() -> None:
    said = "\n".join(merge(EXPORT, RESULTS, COLUMN).notices)
    assert "HW3 softmax (4711): filled 3 of 7 students" in said
    assert "kept as excused: Excused, Eva" in said
    assert "no score yet, so left as they were: ben" in said
    assert "no student has this name or id, so nothing was filled in: doejane_1004; stranger_4242" in said
    assert "no submission, so left as they were: Missing, Max; Student, Test" in said


def test_a_damaged_archive_leaves_its_cell_and_tells_the_reason() -> None:
    merged = merge(EXPORT, {"doejane_1001": samples.unreadable()}, COLUMN)
    assert merged.text == EXPORT
    assert "left as they were: doejane_1001 (not graded: hw3.zip is not an archive" in "\n".join(
        merged.notices
    )


def test_an_id_counts_only_with_its_name() -> None:
    """A folder called team_1001 is not the student with the id 1001."""
    assert merge(EXPORT, {"team_1001": samples.record()}, COLUMN).text == EXPORT


def test_undecided_points_are_said_where_the_assignment_counts_them() -> None:
    counts_all = EXPORT.replace("10,24,(read", "10,40,(read")
    said = "\n".join(merge(counts_all, {"jdoe": samples.record()}, COLUMN).notices)
    assert "has 40 points in Canvas, but 24 points were decided here" in said
    assert "counts" not in "\n".join(merge(EXPORT, {"jdoe": samples.record()}, COLUMN).notices)


def test_scores_are_scaled_to_the_column_where_asked() -> None:
    ten = EXPORT.replace("10,24,(read", "10,20,(read")
    merged = merge(ten, {"jdoe": samples.record()}, COLUMN, scale=True)
    assert table(merged.text)[3][7] == "6.00", "12 of 40 possible points"
    assert any("scaled to 20 points, but 24 of 40 points were decided" in notice for notice in merged.notices)
    whole = samples.record("jdoe", samples.timed())
    assert table(merge(ten, {"jdoe": whole}, COLUMN, scale=True).text)[3][7] == "20.00"
    with pytest.raises(ExportError, match=r"how many points 'HW3 softmax \(4711\)' has"):
        merge(EXPORT.replace("10,24,(read", "10,,(read"), {"jdoe": whole}, COLUMN, scale=True)


def test_the_reason_of_no_points_is_said() -> None:
    lost = samples.problem(
        verdict="FAIL",
        points={"earned": 0, "decided": 12, "possible": 20},
        message="softmax_kernel.cu is missing.",
    )
    notices = merge(EXPORT, {"jdoe": samples.record("jdoe", lost)}, COLUMN).notices
    assert "no points: Doe, Jane (softmax_kernel.cu is missing)" in notices


def test_names_that_two_students_share_are_left_to_a_person() -> None:
    twins = EXPORT.replace("Missing, Max", "Doe, Jane")
    merged = merge(twins, {"Jane Doe": samples.record()}, COLUMN)
    assert merged.text == twins
    assert "several students have this name, so nothing was filled in: Jane Doe" in merged.notices


def test_two_submissions_of_one_student_are_left_to_a_person() -> None:
    merged = merge(EXPORT, {"jdoe": samples.record(), "doejane_1001": samples.record()}, COLUMN)
    assert merged.text == EXPORT
    assert any("more than one submission" in notice for notice in merged.notices)


def test_a_semicolon_is_a_delimiter_where_the_export_has_it() -> None:
    export = "Student;ID;Section;HW3 (1)\n    Points Possible;;;24\nDoe, Jane;7;A;\n"
    assert merge(export, {"doejane_7": samples.record()}).text.splitlines()[2] == "Doe, Jane;7;A;12.00"


def test_several_assignments_ask_for_a_name_and_list_them() -> None:
    with pytest.raises(ExportError, match=r"several assignments.*--column: .*HW2 \(4700\); HW3 softmax"):
        merge(EXPORT, RESULTS)
    with pytest.raises(ExportError, match="no single assignment 'HW9'"):
        merge(EXPORT, RESULTS, "HW9")


def test_a_read_only_column_is_never_filled() -> None:
    with pytest.raises(ExportError, match="no single assignment 'Final Score'"):
        merge(EXPORT, RESULTS, "Final Score")


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "Student,ID,Section\n", "<html></html>\n"])
def test_what_is_no_export_is_refused(text: str) -> None:
    with pytest.raises(ExportError, match="not a gradebook of Canvas"):
        merge(text, RESULTS)


def test_an_open_quotation_mark_is_refused_with_its_line() -> None:
    with pytest.raises(ExportError, match="line 2 is not CSV"):
        merge('Student,ID,Section,HW3 (1)\n"Doe, Jane,1,A,\n', RESULTS)
