"""Outputs of launchers of which more than one is right: the assignment's checker decides, in the judge."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grader.devices.device import Answer, Memory, Schedule, Status
from grader.judge.correctness.arrays import ARRAYS
from grader.problems.checking import Wrong
from grader.problems.contents import integers
from grader.problems.formula import Range, problem
from grader.problems.problem import Case
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from grader.devices.device import Call
    from grader.problems.problem import Checker, Inputs, KernelProblem
    from grader.records.record import CaseResult

CASE = Case("7", "sizes", {"n": 7}, "normal", 3)


def place_of_largest(case: Case, inputs: Inputs, outputs: dict[str, NDArray[Any]]) -> str | Wrong:
    """Of equal numbers any place is right."""
    x, place = inputs.arrays["x"], outputs["place"]
    assert x is not None
    if not 0 <= place[0] < case.sizes["n"]:
        return "the place lies outside of x"
    return Wrong("there is a larger number", "place", x[place] != x.max())


ALONE = problem(
    id="argmax",
    file="argmax.cu",
    launcher="launch_argmax(int* place, const int* x, int n, cudaStream_t stream)",
    check=place_of_largest,
    inputs=lambda n: {"x": integers(0, 1, n)},
    outputs=lambda: {"place": (1,)},
    sizes={"n": Range(1, 100)},
)
WITH_FORMULA = problem(
    id="max",
    file="max.cu",
    launcher="launch_max(int* largest, int* place, const int* x, int n, cudaStream_t stream)",
    formula=lambda x: {"largest": x.max().view(1)},
    check=place_of_largest,
    inputs=lambda n: {"x": integers(0, 1, n)},
    outputs=lambda: {"place": (1,)},
    sizes={"n": Range(1, 100)},
)


class Session:
    """Answers each call with these arrays."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self.arrays = arrays

    def run(self, _: Call) -> Answer:
        return Answer(Status.RETURNED, arrays=self.arrays)

    def close(self) -> None:
        """Nothing is open."""


def judged(problem: KernelProblem, **arrays: NDArray[Any]) -> CaseResult:
    x = problem.inputs(CASE).arrays["x"]
    assert x is not None
    session = Session({"x": x, **arrays})
    return ARRAYS.called(
        problem,
        CASE,
        session,  # type: ignore[arg-type]
        Schedule.PROGRAM,
        None,
        memory=Memory.DEVICE,
        seconds=1.0,
    )[0]


def places(where: Callable[[NDArray[Any]], NDArray[Any]]) -> list[int]:
    x = ALONE.inputs(CASE).arrays["x"]
    assert x is not None
    return [int(place) for place in np.flatnonzero(where(x))]


def int32(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, np.int32)


def test_every_right_answer_passes() -> None:
    largest = places(lambda x: x == x.max())
    assert len(largest) > 1
    for place in largest:
        result = judged(ALONE, place=int32(place))
        assert result.verdict is Verdict.PASS
        assert [(output.name, output.bad, output.total) for output in result.outputs] == [("place", 0, 1)]


def test_a_wrong_answer_fails_with_the_checker_s_words_and_an_example() -> None:
    (place, *_) = places(lambda x: x < x.max())
    result = judged(ALONE, place=int32(place))
    assert result.verdict is Verdict.FAIL
    assert result.diagnosis == f"there is a larger number; place[0] is {place}"
    assert [(output.bad, output.rule.method) for output in result.outputs] == [(1, "checker")]


def test_a_text_is_about_the_outputs_as_a_whole() -> None:
    result = judged(ALONE, place=int32(99))
    assert (result.verdict, result.diagnosis) == (Verdict.FAIL, "the place lies outside of x")
    assert [(output.name, output.bad) for output in result.outputs] == [("place", 1)]


def test_an_output_that_was_never_written_is_said_to_be_so() -> None:
    nothing = np.frombuffer(np.uint32(0xFFF00001).tobytes(), np.int32)
    assert "nothing was written" in judged(ALONE, place=nothing).diagnosis


def test_what_the_formula_returns_is_compared_first() -> None:
    place = int32(places(lambda x: x == x.max())[0])
    assert judged(WITH_FORMULA, largest=int32(1), place=place).verdict is Verdict.PASS
    wrong = judged(WITH_FORMULA, largest=int32(5), place=int32(99))
    assert [(output.name, output.bad) for output in wrong.outputs] == [("largest", 1)]
    outside = judged(WITH_FORMULA, largest=int32(1), place=int32(99))
    assert [(output.name, output.bad) for output in outside.outputs] == [("largest", 0), ("place", 1)]


def test_an_input_must_not_change_beside_a_checker() -> None:
    place = int32(places(lambda x: x == x.max())[0])
    result = judged(ALONE, place=place, x=int32(*range(7)))
    assert result.verdict is Verdict.FAIL
    assert "x must not change" in result.message


def test_an_array_in_place_is_an_output_that_the_checker_gets() -> None:
    sorting = problem(
        id="group",
        file="group.cu",
        launcher="launch_group(int* x, int n, cudaStream_t stream)",
        check=lambda _, inputs, outputs: (
            ""
            if sorted(inputs.arrays["x"]) == sorted(outputs["x"]) and (np.diff(outputs["x"]) >= 0).all()
            else "it is not sorted"
        ),
        inputs=lambda n: {"x": integers(0, 9, n)},
        sizes={"n": Range(1, 100)},
    )
    x = sorting.inputs(CASE).arrays["x"]
    assert x is not None
    assert judged(sorting, x=np.sort(x)).verdict is Verdict.PASS
    assert judged(sorting, x=np.sort(x)[::-1].copy()).diagnosis == "it is not sorted"


def failing(_case: Case, _inputs: Inputs, outputs: dict[str, NDArray[Any]]) -> str:
    return str([1, 2][int(outputs["place"][0])])


@pytest.mark.parametrize(
    ("checker", "message"),
    [
        (failing, "the assignment's checker fails in 7 with IndexError: list index out of range"),
        (lambda *_: True, "the assignment's checker returns True in 7: let it return a text"),
        (lambda *_: Wrong("it is", "plaice"), "that plaice is wrong, which is no output: there are place"),
        (lambda *_: Wrong("it is", "place", np.ones(3, bool)), r"in an array of the shape \(3,\)"),
        (lambda *_: Wrong("it is", elements=np.ones(3, bool)), "name an output, and give elements"),
    ],
)
def test_a_checker_that_fails_is_no_student_s_fault(checker: Checker, message: str) -> None:
    result = judged(replace(ALONE, checker=checker), place=int32(9))
    assert result.verdict is Verdict.INFRA_ERROR
    assert re.search(message, result.message), result.message


def test_the_line_of_a_checker_that_fails_is_named() -> None:
    result = judged(replace(ALONE, checker=failing), place=int32(9))
    line = failing.__code__.co_firstlineno + 1
    assert (result.file.endswith("test_checkers.py"), result.line) == (True, line)
