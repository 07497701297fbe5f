"""What a problem's result has beyond its cases."""

from __future__ import annotations

from grader.records.record import CaseResult
from grader.records.verdict import Verdict
from grader.run.judging import _with_lines

SOURCES = {"kernel.py": b"import triton\n\n\ndef launch(y):\n    raise ValueError\n"}


def _case(message: str) -> CaseResult:
    return CaseResult(name="a", group="g", verdict=Verdict.FAIL, message=message)


def test_the_first_message_with_a_place_has_the_lines_around_it() -> None:
    cases = [_case("it died"), *[_case("kernel.py:5: ValueError: ")] * 2]
    none, first, second = _with_lines(cases, SOURCES)
    assert none.source is second.source is None
    assert first.source is not None
    assert (first.source.first, first.source.lines[3]) == (2, "    raise ValueError")


def test_a_place_in_another_file_has_none() -> None:
    (case,) = _with_lines([_case("other.py:5: ValueError: ")], SOURCES)
    assert case.source is None
