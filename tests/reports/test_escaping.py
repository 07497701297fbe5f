"""What a student wrote, in each place where something else could read it."""

from __future__ import annotations

import io

import pytest
import report_samples as samples

from grader.reports import console, escaping


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[2J\x1b[1;31mred", "red"),
        ("\x1b]0;title\x07x", "x"),
        ("\x1b]8;;https://evil.example\x1b\\link", "link"),
        ("a\x9b31mb\x00\x07\x08c", "a31mbc"),
        ("ab\u202ecd\u2066e\u2028f", "abcdef"),
        ("\ud800x\uffff", "x"),
        ("line\n\tindented Käthe 教授 😀", "line\n\tindented Käthe 教授 😀"),
    ],
)
def test_plain_text_steers_nothing_and_keeps_what_can_be_read(text: str, left: str) -> None:
    assert escaping.plain(text) == left


def test_a_line_is_one_line() -> None:
    assert escaping.line(" a\r\n\t b\n") == "a b"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\n=x", "\uff1d1"])
def test_a_cell_that_a_spreadsheet_would_execute_is_text(text: str) -> None:
    assert escaping.cell(text) == f"'{text}"


def test_other_cells_stay() -> None:
    assert escaping.cell("1.50") == "1.50"
    assert escaping.cell("a=b") == "a=b"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("/opt/grader/tmp/row.cuh:16: error", "row.cuh:16: error"),
        ('in "/usr/local/cuda-13.0/include/x.h"', 'in "x.h"'),
        ("3/4 of https://example.org/a/b and a/b/c", "3/4 of https://example.org/a/b and a/b/c"),
    ],
)
def test_folders_of_the_machine_are_left_out(text: str, left: str) -> None:
    assert escaping.without_folders(text) == left


def test_nothing_of_a_record_steers_the_terminal() -> None:
    text = io.StringIO()
    console.show(samples.hostile(), text)
    assert not set(text.getvalue()) & {"\x1b", "\x00", "\r", "\u202e"}
    assert "<script>alert(1)</script>" in text.getvalue()


def test_a_workflow_command_stays_one_command() -> None:
    assert escaping.workflow_message("50%\n::error::x") == "50%25%0A::error::x"
    assert escaping.workflow_property("a:b,c\n%") == "a%3Ab%2Cc%0A%25"
