"""What a reader is told first."""

from __future__ import annotations

import pytest
import report_samples as samples

from grader.records.diagnosis import theme
from grader.records.findings import KINDS
from grader.records.record import ProblemResult
from grader.reports.causes import alike, sightings, wrong
from grader.reports.fix_first import causes


def problem(content: dict[str, object]) -> ProblemResult:
    return ProblemResult.model_validate(content)


def test_instances_of_a_template_are_one_place() -> None:
    (place,) = sightings(problem(samples.raced()))
    assert place.times == 2
    assert place.kernels == ("ker_layer_norm",)
    assert place.where == "layernorm_kernel.cu:17"


def test_each_thing_to_mend_is_a_cause_in_one_line() -> None:
    assert causes(problem(samples.raced())) == (
        f"{KINDS['race_shared'].mistake} at layernorm_kernel.cu:17",
        "The last elements of a row are not written",
    )


@pytest.mark.parametrize(
    ("log", "cause"),
    [
        (
            'k.cu(22): error: identifier "flaot" is undefined\n',
            'k.cu does not compile: identifier "flaot" is undefined at k.cu:22',
        ),
        ("k.cu(3): catastrophic error: cannot open\n", "k.cu does not compile: cannot open at k.cu:3"),
        (
            "k.cu:1:10: fatal error: row.cuh: No such file\n",
            "k.cu does not compile: row.cuh: No such file at k.cu:1",
        ),
        ("k.cu(7): warning #177-D: x\nk.cu(8): error: second\n", "k.cu does not compile: second at k.cu:8"),
    ],
)
def test_a_file_that_does_not_compile_says_the_first_error(log: str, cause: str) -> None:
    assert causes(problem(samples.unbuilt(log=log))) == (cause,)


def test_a_right_but_slow_kernel_is_too_slow_and_a_right_one_has_no_causes() -> None:
    assert causes(problem(samples.timed(speedup=3.0))) == ("Right, but too slow",)
    assert causes(problem(samples.timed(speedup=8.0))) == ()


def test_a_crash_that_a_checker_saw_is_told_once() -> None:
    crashed = samples.raced()
    crashed["correctness"]["cases"] = [
        {
            "name": "c",
            "group": "g",
            "verdict": "FAIL",
            "message": "cudaErrorIllegalAddress: _Z3kerPf, /tmp/k.cu:3",
        }
    ]
    (cause,) = causes(problem(crashed))
    assert cause.endswith("layernorm_kernel.cu:17")


def test_what_is_waived_is_no_cause() -> None:
    content = samples.raced()
    for case in content["correctness"]["cases"]:
        case["waived"] = "the starter does this"
    content["checks"][0]["findings"] = [samples.finding(waived="the starter does this")]
    assert causes(problem(content)) == ()
    assert wrong(problem(content)) == ()
    assert [place.waived for place in sightings(problem(content))] == ["the starter does this"]


def test_cases_that_say_the_same_are_told_together() -> None:
    first, second = alike(wrong(problem(samples.raced())))
    assert first.case.name == "37 x 1000"
    assert first.repeats == ()
    assert (second.case.name, second.repeats) == ("38 x 1000", ("39 x 1000",))


def test_causes_that_differ_in_numbers_have_one_theme() -> None:
    assert theme("37 of 1,000 wrong, 1e-5") == theme("5 of 20 wrong, 2.5e+3")
    assert theme("rows are wrong") != theme("columns are wrong")
