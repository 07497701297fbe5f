"""The gradebook and the page: blanks where nothing is decided; nothing that a student wrote is executed."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from fake_grade import record as made

from grader.batch.gradebook import gradebook
from grader.batch.page import page

if TYPE_CHECKING:
    from grader.results import Record

OPTIONS = {"--assignment": "llm_systems_3", "--device": "sim"}


def record(code: int = 0, **changes: object) -> Record:
    return made(OPTIONS, "0", None, code).model_copy(update=changes)


def rows(results: dict[str, Record | None]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(gradebook(results), newline="")))


def test_a_row_has_totals_problems_and_verdicts() -> None:
    (row,) = rows({"doe": record(1)})
    assert list(row)[:5] == ["submission", "score", "decided", "possible", "softmax_forward"]
    assert row["score"] == "15.00"
    assert row["decided"] == "60.00"
    assert row["possible"] == "100.00"
    assert row["softmax_forward"] == "3.00"
    assert row["softmax_forward verdict"] == "FAIL"
    assert row["note"] == "wrong"


def test_zero_points_are_zero_and_undecided_ones_blank() -> None:
    zero = record(1)
    problem = zero.problems[0]
    lost = problem.model_copy(update={"points": problem.points.model_copy(update={"earned": 0.0})})
    undecided = problem.model_copy(
        update={"points": problem.points.model_copy(update={"earned": 0.0, "decided": 0.0}), "id": "other"}
    )
    (row,) = rows({"doe": zero.model_copy(update={"problems": [lost, undecided]})})
    assert row["softmax_forward"] == "0.00"
    assert row["other"] == ""


def test_a_fault_of_the_machine_leaves_blanks_and_its_reason() -> None:
    broken, fine = record(3), record(0)
    half = fine.model_copy(update={"problems": [*fine.problems[:-1], broken.problems[-1]]})
    whole, part, pending = rows({"a": broken, "b": half, "c": None})
    assert whole["score"] == whole["decided"] == whole["softmax_forward"] == ""
    assert whole["note"] == "no nvcc here"
    assert part["score"] == part["decided"] == ""
    assert part["softmax_forward"] == "12.00"
    assert part["transformer"] == ""
    assert pending["score"] == ""
    assert pending["note"] == "not graded yet"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_a_name_that_a_spreadsheet_would_execute_is_text(name: str) -> None:
    (row,) = rows({name: None})
    assert row["submission"] == f"'{name}"


def test_commas_quotes_and_line_breaks_of_a_student_stay_in_their_cell() -> None:
    name = 'doe, "jane"\nx'
    submission = record().submission.model_copy(update={"error": "a\x1b[31m,\n=cmd"})
    (row,) = rows({name: record(submission=submission)})
    assert row["submission"] == name
    assert row["note"] == "a,"


class Tags(HTMLParser):
    """Collects the tags, links and anchors of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        values = dict(attributes)
        assert not [name for name in values if name.startswith("on")]
        self.links.add(values.get("href") or "")
        self.anchors.add(values.get("id") or "")


def test_nothing_of_a_student_becomes_markup() -> None:
    evil = '<script>alert(1)</script>"><img src=x onerror=alert(1)>[/b]'
    hostile = record(1)
    problem = hostile.problems[0].model_copy(update={"message": evil, "printed": evil, "title": evil})
    submission = hostile.submission.model_copy(update={"notes": [evil]})
    hostile = hostile.model_copy(update={"problems": [problem], "submission": submission})
    text = page({f'javascript:"{evil}': hostile}, "Homework 3")
    found = Tags(text)
    assert found.tags == set(Tags(page({"doe": record()}, "Homework 3")).tags)
    assert not {"script", "img"} & found.tags
    assert not [link for link in found.links if link.startswith("javascript:")]
    assert "&lt;script&gt;" in text


def test_each_verdict_links_to_what_became_of_the_problem() -> None:
    found = Tags(page({"jane doe": record(1)}, "Homework 3"))
    assert "jane%20doe/result.json" in found.links
    assert "#jane%20doe/softmax_forward" in found.links
    assert "jane doe/softmax_forward" in found.anchors
