"""The table of typical bugs of students, and how it is decided whether a report explains one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_samples as samples
import student_bugs
from student_bugs import Bug, judge

from grader.records.record import ProblemResult

BUGS = student_bugs.bugs()
RACE = Bug("race", "a barrier is missing", "layernorm_forward", "k.cu", (), (17,), ("no barrier",), ())


class Missing(Bug):
    """The same bug without a kernel of its own."""

    own_lines = frozenset({17})


def raced(bug: Bug) -> student_bugs.Result:
    """What the report of a race between the lines 14 and 17 is worth for ``bug``."""
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": [samples.two_accesses()]}]
    return judge(Missing(**vars(bug)), ProblemResult.model_validate(samples.raced(checks=checks)))


def test_each_bug_changes_its_kernel_and_has_a_name_of_its_own() -> None:
    assert len({bug.id for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.text != bug.right, bug.id
        assert bug.own_lines, bug.id
        assert max(bug.own_lines) <= bug.text.count("\n") + 1, bug.id
        assert bug.causes, bug.id
        assert bug.file, bug.id


def test_each_kind_has_three_bugs() -> None:
    kinds = [bug.kind for bug in BUGS]
    assert {kind: kinds.count(kind) for kind in set(kinds) if kinds.count(kind) < 3} == {}


def test_a_line_that_was_removed_is_where_its_neighbours_are() -> None:
    bug = next(bug for bug in BUGS if bug.id == "tree_barrier_before_dot")
    assert bug.own_lines == {64, 65}


@pytest.mark.parametrize(
    ("bug", "verdict"),
    [
        (RACE, "explained"),
        (replace(RACE, causes=("epsilon",)), "another cause"),
        (replace(RACE, false=("Put a __syncthreads()",)), "false advice: Put a __syncthreads()"),
        (replace(RACE, kernel="k.py"), "false advice: __sync"),
    ],
)
def test_a_report_is_judged_by_its_first_lines(bug: Bug, verdict: str) -> None:
    assert raced(bug).verdict == verdict


def test_a_line_elsewhere_is_none_of_the_bug() -> None:
    elsewhere = replace(raced(RACE), own_line=False, any_line=False)
    assert (elsewhere.verdict, elsewhere.as_it_must) == ("no line", False)


def test_the_table_counts_by_kind() -> None:
    results = [raced(RACE), raced(replace(RACE, causes=("epsilon",))), raced(replace(RACE, kind="epsilon"))]
    assert student_bugs.table(results).splitlines()[2:] == [
        "| a barrier is missing | 2 | 1 | 1 | 0 |",
        "| epsilon | 1 | 1 | 1 | 0 |",
        "| all | 3 | 2 | 2 | 0 |",
        "",
        "explained: 66.7%",
    ]
