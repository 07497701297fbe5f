"""The quick way through the cases: what failed last time, a dozen small ones, all; up to what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from first_assignment import KERNELS
from reports import homework

from grader.judge.correctness.cases import Judged
from grader.problems.problem import Case
from grader.records.findings import Finding, Severity
from grader.records.record import CaseResult
from grader.records.verdict import Ending, Verdict
from grader.run import grading
from grader.run.options import GradingOptions
from grader.run.passes import DOZEN, judged_by_name, judged_in_passes, passes

if TYPE_CHECKING:
    from pathlib import Path

CASES = tuple(
    Case(name=f"{group} {size}", group=group, sizes={"n": size}, distribution="normal", seed=1)
    for group in ("short", "long", "odd")
    for size in (1000, 10, 20, 30, 40, 50, 60)
)
RACE = Finding("race_shared", "no_syncthreads", "k", "k.cu", 1)


def judging(*wrong: str, findings: tuple[Finding, ...] = ()) -> tuple[Judged, list[str]]:
    """What comes of the cases if those named ``wrong`` fail, and the order in which they ran."""
    ran: list[str] = []

    def judge(part: tuple[Case, ...]) -> Judged:
        ran.extend(case.name for case in part)
        return Judged(
            tuple(
                CaseResult(
                    name=case.name,
                    group=case.group,
                    verdict=Verdict.FAIL if case.name in wrong else Verdict.PASS,
                )
                for case in part
            ),
            findings=findings,
        )

    return judged_in_passes(CASES, ("long 30", "odd 1000"), judge), ran


def test_cases_that_are_named_run_alone_in_their_order_and_the_others_are_undecided() -> None:
    ran: list[str] = []

    def judge(part: tuple[Case, ...]) -> Judged:
        ran.extend(case.name for case in part)
        return Judged(
            tuple(CaseResult(name=case.name, group=case.group, verdict=Verdict.PASS) for case in part)
        )

    judged = judged_by_name(CASES, ("odd 10", "short 1000"), judge)
    assert ran == ["short 1000", "odd 10"]
    assert [case.name for case in judged.cases] == [case.name for case in CASES]
    assert {case.name for case in judged.cases if case.verdict is Verdict.PASS} == set(ran)
    assert {case.ending for case in judged.cases if case.name not in ran} == {Ending.NOT_RUN}
    assert {case.verdict for case in judged_by_name(CASES, ("even",), judge).cases} == {Verdict.NOT_MEASURED}


def test_the_case_that_failed_comes_first_then_a_dozen_small_ones_of_all_groups_then_the_rest() -> None:
    again, dozen, rest = passes(CASES, ("odd 1000", "long 30"))
    assert [case.name for case in again] == ["long 30"]
    assert len(dozen) == DOZEN
    assert {case.group for case in dozen} == {"short", "long", "odd"}
    assert max(case.sizes["n"] for case in dozen) < 1000
    assert sorted(case.name for case in (*again, *dozen, *rest)) == sorted(case.name for case in CASES)


def test_every_group_of_a_real_problem_is_in_the_first_pass() -> None:
    for problem in KERNELS.values():
        cases = problem.cases(1)
        dozen, _ = passes(cases, ())
        assert {case.group for case in dozen} == {case.group for case in cases}


def test_it_ends_behind_the_pass_that_shows_something_wrong() -> None:
    judged, ran = judging("long 30")
    assert ran == ["long 30"]
    assert [case.name for case in judged.cases] == [case.name for case in CASES]
    verdicts = [case.verdict for case in judged.cases]
    assert verdicts.count(Verdict.FAIL) == 1
    assert verdicts.count(Verdict.NOT_MEASURED) == len(CASES) - 1
    _, ran = judging("short 10")
    assert len(ran) == 1 + DOZEN


def test_a_finding_ends_it_too_and_a_warning_does_not() -> None:
    assert judging(findings=(RACE,))[1] == ["long 30"]
    warned = judging(findings=(Finding(**{**vars(RACE), "severity": Severity.WARNING}),))
    assert len(warned[1]) == len(CASES)


def test_where_all_is_right_every_case_runs_once_and_comes_back_in_its_order() -> None:
    judged, ran = judging()
    assert sorted(ran) == sorted(case.name for case in CASES)
    assert [case.name for case in judged.cases] == [case.name for case in CASES]
    assert all(case.verdict is Verdict.PASS for case in judged.cases)


def test_what_was_not_run_stays_undecided(tmp_path: Path, ptx_only: None) -> None:  # noqa: ARG001
    assignment, name = homework.write(tmp_path), "standard-deviation"
    known = assignment.problems[name].cases(1)
    failed = {name: [known[0].name]}
    request = grading.GradingRequest(
        tmp_path,
        assignment,
        (name,),
        GradingOptions("sim", memory="device"),
        seed=1,
        fast=True,
        failed=failed,
    )
    (problem,) = grading.grade(request).problems
    verdicts = {case.name: case.verdict for case in problem.correctness.cases}
    assert verdicts.pop(known[0].name) is Verdict.FAIL
    assert set(verdicts.values()) == {Verdict.NOT_MEASURED}
    assert [group.name for group in problem.correctness.groups if group.verdict.decided] == [known[0].group]
    assert 0 == problem.points.earned < problem.points.decided < 2
    assert problem.verdict is Verdict.FAIL
