"""The gradebook: blanks where nothing is decided, and nothing that a spreadsheet would execute."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest
import report_samples as samples

from grader.reports.gradebook import gradebook

if TYPE_CHECKING:
    from grader.records.record import Record


def rows(results: dict[str, Record | None]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(gradebook(results), newline="")))


def test_a_row_has_totals_problems_and_verdicts() -> None:
    wrong = samples.raced(message="wrong")
    (row,) = rows({"doe": samples.record("doe", samples.problem(), wrong)})
    assert list(row)[:5] == ["submission", "score", "decided", "possible", "softmax_forward"]
    assert (row["score"], row["decided"], row["possible"]) == ("12.00", "24.00", "40.00")
    assert row["softmax_forward"] == "12.00"
    assert row["layernorm_forward verdict"] == "FAIL"
    assert row["note"] == "wrong"


def test_the_note_gives_the_reason_of_a_zero_and_the_message_of_what_lost_less() -> None:
    some = samples.raced(points={"earned": 3, "decided": 12, "possible": 20})
    none, less = rows({"a": samples.record("a", samples.raced()), "b": samples.record("b", some)})
    assert none["note"].startswith("LayerNorm forward: Two threads use the same shared memory")
    assert none["note"].endswith("at layernorm_kernel.cu:17")
    assert less["note"] == ""


def test_zero_points_are_zero_and_undecided_ones_blank() -> None:
    undecided = samples.problem("other", points={"earned": 0, "decided": 0, "possible": 20})
    (row,) = rows({"doe": samples.record("doe", samples.raced(), undecided)})
    assert row["layernorm_forward"] == "0.00"
    assert row["other"] == ""


def test_a_fault_of_the_machine_leaves_blanks_and_its_reason() -> None:
    failed = samples.failed_machine("layernorm_forward")
    whole, part, pending = rows(
        {
            "a": samples.record("a", failed, error="no nvcc here.\nIt is missing."),
            "b": samples.record("b", samples.problem(), failed),
            "c": None,
        }
    )
    assert whole["score"] == whole["decided"] == whole["layernorm_forward"] == ""
    assert whole["note"].startswith("no nvcc here; CUDA error")
    assert part["score"] == part["decided"] == part["layernorm_forward"] == ""
    assert part["softmax_forward"] == "12.00"
    assert pending["score"] == ""
    assert pending["note"] == "not graded yet"


def test_a_damaged_archive_leaves_blanks_and_its_reason() -> None:
    (row,) = rows({"doe": samples.unreadable()})
    assert row["score"] == row["softmax_forward"] == ""
    assert row["decided"] == "0.00"
    assert row["note"] == "not graded: hw3.zip is not an archive or is damaged. Pack it again"


def test_what_the_simulator_cannot_run_leaves_blanks_and_its_reason() -> None:
    (row,) = rows({"doe": samples.record("doe", samples.lacking(), samples.raced())})
    assert row["softmax_forward"] == row["score"] == row["decided"] == ""
    assert row["layernorm_forward"] == "0.00"
    assert "Undecided: the simulator cannot run textures at softmax_kernel.cu:15" in row["note"]


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_a_name_that_a_spreadsheet_would_execute_is_text(name: str) -> None:
    (row,) = rows({name: None})
    assert row["submission"] == f"'{name}"


def test_commas_quotes_and_line_breaks_of_a_student_stay_in_their_cell() -> None:
    name = 'doe, "jane"\nx'
    submission = {"name": "x", "sha256": "", "files": [], "error": "a\x1b[31m,\n=cmd"}
    (row,) = rows({name: samples.record("x", submission=submission)})
    assert row["submission"] == name
    assert row["note"].startswith("a,")
