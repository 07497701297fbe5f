"""What tells wrong cases from right ones, in a sentence."""

from __future__ import annotations

import pytest

from grader.records.record import CaseResult
from grader.records.verdict import Verdict
from grader.reports.groups import rest_behind, sizes_of, told_apart


def case(verdict: Verdict, group: str = "short rows", **sizes: int) -> CaseResult:
    return CaseResult(name=str(sizes), group=group, verdict=verdict, sizes=sizes)


@pytest.mark.parametrize(
    ("wrong", "right", "sentence"),
    [
        ([{"b": 2}, {"b": 3}], [{"b": 1}], "Wrong in each case with b >= 2, right in all others."),
        ([{"b": 1}], [{"b": 2}, {"b": 9}], "Wrong in each case with b <= 1, right in all others."),
        ([{"b": 2}, {"b": 9}], [{"b": 1}, {"b": 3}], "Wrong only with b >= 2."),
        ([{"b": 1}, {"b": 9}], [{"b": 1}, {"b": 9}], "Wrong in 2 of 4 cases, of all groups."),
        ([{"b": 1}, {"b": 2}], [], "All 2 cases that ran are wrong."),
        ([{"b": 1}], [], "No other case ran."),
    ],
)
def test_a_size_that_tells_wrong_from_right_is_named(
    wrong: list[dict[str, int]], right: list[dict[str, int]], sentence: str
) -> None:
    cases = [case(Verdict.FAIL, **sizes) for sizes in wrong]
    cases += [case(Verdict.PASS, **sizes) for sizes in right]
    assert told_apart(cases) == sentence


def test_without_such_a_size_the_groups_are_named_and_cases_that_do_not_count_are_left_out() -> None:
    cases = [
        case(Verdict.FAIL, "with a mask", rows=1),
        case(Verdict.PASS, "no mask", rows=1),
        case(Verdict.NOT_MEASURED, "with a mask", rows=9),
    ]
    assert told_apart(cases) == "Wrong in 1 of 2 cases: with a mask; right: no mask."


def test_a_size_that_tells_some_cases_from_others() -> None:
    short, long = case(Verdict.FAIL, steps=1, rows=70), case(Verdict.FAIL, steps=8, rows=5)
    assert sizes_of([short], [long, case(Verdict.PASS, steps=2, rows=90)]) == "steps <= 1"
    assert sizes_of([short], [case(Verdict.PASS, steps=1, rows=70)]) == ""


@pytest.mark.parametrize(
    ("cases", "size"),
    [
        ([(3, 31), (3, 1999), (1, 37)], 4),
        ([(31, 31), (207, 1999), (37, 37)], 256),
        ([(3, 31), (3, 1999), (2, 37)], 0),
        ([(1, 1), (1, 3)], 0),  # too few to tell a rest from chance
    ],
)
def test_what_each_case_lacks_is_the_rest_behind_a_number(cases: list[tuple[int, int]], size: int) -> None:
    assert rest_behind(cases) == size
