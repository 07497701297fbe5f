"""Large outputs are compared at some places, and as a whole where anything there is wrong or not written."""

from __future__ import annotations

import weakref
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pytest

from grader.devices.device import Answer, Call, Memory, Schedule, Status
from grader.judge.correctness.cases import WorkedOutAhead, judge
from grader.judge.correctness.comparison import compare
from grader.judge.correctness.places import ELEMENTS, LARGE, RANGE, right_at_places, work_out
from grader.judge.correctness.remembered import MOST_BYTES, remembered
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    Slices,
)
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

ROWS, COLUMNS = 4096, 64
oracle_sizes: list[int] = []


def doubled(_: Case, inputs: Inputs) -> Mapping[str, Expectation]:
    wide = 2.0 * inputs.wide("x")
    oracle_sizes.append(wide.size)
    sums = wide.sum(axis=1)
    return {
        "x": Expectation((Candidate(wide, np.full(wide.shape, 1e-6)),)),
        "sums": Expectation((Candidate(sums, np.full(sums.shape, 1e-3)),)),
    }


def some(inputs: Inputs, index: NDArray[np.intp]) -> Inputs:
    assert inputs.arrays["x"] is not None
    return Inputs({"x": inputs.arrays["x"][index]}, {"sums": index.shape}, {})


PROBLEM = KernelProblem(
    id="double",
    file="double.cu",
    entry_point="launch_double",
    parameters=(ArrayParameter("x", Role.INOUT), ArrayParameter("sums", Role.OUTPUT)),
    groups=("all",),
    cases=lambda _: (),
    timing_cases=lambda _: (),
    inputs=lambda case: Inputs(
        {"x": np.random.default_rng(case.seed).random((case.sizes["rows"], COLUMNS), np.float32)},
        {"sums": (case.sizes["rows"],)},
        {},
    ),
    oracle=doubled,
    minimal_bytes=lambda _: 32,
    slices=(Slices(("x", "sums"), lambda case: case.sizes["rows"], some),),
)
CASE = Case("large", "all", {"rows": ROWS}, "normal", 7, at_places=True)


def answer(case: Case = CASE) -> tuple[Inputs, dict[str, NDArray[np.generic]]]:
    inputs = PROBLEM.inputs(case)
    x = inputs.arrays["x"]
    assert x is not None
    doubled: NDArray[np.float32] = 2 * x
    return inputs, {"x": doubled, "sums": doubled.sum(axis=1, dtype=np.float64).astype(np.float32)}


def test_right_outputs_are_compared_at_a_few_places() -> None:
    oracle_sizes.clear()
    inputs, got = answer()
    compared = right_at_places(PROBLEM, CASE, inputs, got)
    assert compared is not None
    assert {name: output.right for name, output in compared.items()} == {"x": True, "sums": True}
    assert compared["x"].total == ROWS * COLUMNS
    assert len(oracle_sizes) == 5
    assert max(oracle_sizes) <= ELEMENTS


@pytest.mark.parametrize("row", [0, ROWS // 2, ROWS - 1])
def test_a_wrong_number_at_the_first_middle_and_last_place_is_seen(row: int) -> None:
    inputs, got = answer()
    got["x"][row, 5] += 1
    assert right_at_places(PROBLEM, CASE, inputs, got) is None


@pytest.mark.parametrize("row", range(7, ROWS, 997))
def test_what_is_not_written_is_seen_wherever_it_is(row: int) -> None:
    inputs, got = answer()
    got["sums"][row : row + 1].view(np.uint32)[:] = 0xFFFFFFFF
    assert right_at_places(PROBLEM, CASE, inputs, got) is None
    inputs, got = answer()
    assert inputs.arrays["x"] is not None
    got["x"][row] = inputs.arrays["x"][row]
    assert right_at_places(PROBLEM, CASE, inputs, got) is None


def test_places_are_drawn_from_the_seed() -> None:
    starts = []

    def noted(inputs: Inputs, index: NDArray[np.intp]) -> Inputs:
        starts[-1].append(int(index[0]))
        return some(inputs, index)

    slices = (replace(PROBLEM.slices[0], take=noted),)
    for seed in (1, 1, 2):
        starts.append([])
        case = replace(CASE, seed=seed)
        assert right_at_places(replace(PROBLEM, slices=slices), case, *answer(case)) is not None
    first, again, other = starts
    assert first == again
    assert first[:3] == other[:3]
    assert first[3:] != other[3:]


def test_outputs_of_few_slices_or_of_none_are_compared_as_a_whole() -> None:
    few = replace(CASE, sizes={"rows": 100})
    assert right_at_places(PROBLEM, few, *answer(few)) is None
    assert right_at_places(replace(PROBLEM, slices=()), CASE, *answer()) is None


def test_large_outputs_that_cannot_be_compared_at_places_are_compared_everywhere_in_ranges() -> None:
    in_place = replace(CASE, sizes={"rows": LARGE // COLUMNS})
    inputs, got = answer(in_place)
    assert inputs.arrays["x"] is not None
    row = LARGE // COLUMNS - 700
    # Right, but as if nothing had been written.
    inputs.arrays["x"][row] = got["x"][row] = got["sums"][row] = 0
    oracle_sizes.clear()
    compared = right_at_places(PROBLEM, in_place, inputs, got)
    assert compared is not None
    assert sum(oracle_sizes) == LARGE
    assert max(oracle_sizes) <= RANGE
    expected = doubled(in_place, inputs)
    for name, output in compared.items():
        whole = compare(name, expected[name], got[name])
        assert (output.max_error, output.allowed) == (whole.max_error, whole.allowed)
        assert output.total == whole.total
    got["x"][row + 1, 3] += 1
    assert right_at_places(PROBLEM, in_place, inputs, got) is None


@pytest.mark.parametrize("rows", [ROWS, 100, LARGE // COLUMNS])
def test_what_was_worked_out_ahead_is_all_that_right_outputs_are_compared_with(rows: int) -> None:
    remembering, case = remembered(PROBLEM), replace(CASE, sizes={"rows": rows})
    inputs = remembering.inputs(case)
    work_out(remembering, case, inputs)
    oracle_sizes.clear()
    compared = right_at_places(remembering, case, inputs, answer(case)[1])
    assert not oracle_sizes
    assert (compared is None) == (rows == 100)


def test_large_cases_are_worked_out_a_few_ahead_of_the_one_that_runs() -> None:
    drawn: list[int] = []

    def inputs(case: Case) -> Inputs:
        drawn.append(case.seed)
        return PROBLEM.inputs(case)

    rows = 2 * MOST_BYTES // (4 * COLUMNS)
    cases = [replace(CASE, name=str(seed), sizes={"rows": rows}, seed=seed) for seed in range(9)]
    remembering = remembered(replace(PROBLEM, inputs=inputs))
    with closing(WorkedOutAhead(remembering, cases, 2)) as ahead:
        for number, case in enumerate(cases):
            ahead.begin(case)
            given = remembering.inputs(case)
            assert right_at_places(remembering, case, given, answer(case)[1]) is not None
            assert max(drawn) <= number + 2
            forgotten = weakref.ref(given)
            del given
    assert sorted(drawn) == list(range(9))
    assert forgotten() is None


class _Session:
    """Gives the same outputs for every call."""

    def __init__(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        self._arrays = arrays

    def run(self, _: Call) -> Answer:
        return Answer(Status.RETURNED, arrays=self._arrays)

    def close(self) -> None:
        """Nothing is open."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("wrong", "verdict"), [((), Verdict.PASS), ((0, ROWS - 1), Verdict.FAIL)])
def test_a_wrong_case_is_reported_with_all_that_is_wrong(wrong: tuple[int, ...], verdict: Verdict) -> None:
    inputs, got = answer()
    for row in wrong:
        got["x"][row, 5] += 1
    oracle_sizes.clear()
    judged = judge(
        PROBLEM, (CASE,), lambda: _Session(got), (Schedule.PROGRAM,), memory=Memory.DEVICE, seconds=1.0
    )
    (case,) = judged.cases
    assert case.verdict is verdict
    assert [output.bad for output in case.outputs] == [len(wrong), 0]
    assert (max(oracle_sizes) == inputs.arrays["x"].size) == bool(wrong)  # type: ignore[union-attr]
