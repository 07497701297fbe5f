"""What the processes of a batch make once for all: the same bits, and no more than there is room for."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier
from typing import TYPE_CHECKING

import numpy as np
import pytest
from first_assignment import KERNELS

from grader.judge.correctness import shared as shared_of
from grader.judge.correctness.places import right_at_places
from grader.judge.correctness.remembered import remembered
from grader.judge.correctness.shared import SharedArrays
from grader.problems.dtypes import DTYPES
from grader.problems.grid import MAGNITUDES
from grader.problems.problem import Candidate, Expectation, Inputs, KernelProblem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grader.problems.problem import Case

KEY = ("assignment", 3, "case")
MANY = 1 << 15  # elements


@pytest.fixture(autouse=True)
def all_is_worth_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_of, "LEAST_SECONDS", 0.0)


def never() -> Inputs:
    raise AssertionError("made again")


def bits(inputs: Inputs) -> dict[str, bytes | None]:
    return {name: None if one is None else one.tobytes() for name, one in inputs.arrays.items()}


def test_inputs_come_back_as_they_were_drawn(tmp_path: Path) -> None:
    special = np.array([[np.nan, -0.0, np.inf], [1e-45, 3.4e38, -1.0]], np.float32)
    drawn = Inputs(
        {
            "none": None,
            "half": special.astype(DTYPES["bfloat16"].storage),
            "x": special,
            "ids": np.arange(7, dtype=np.int64),
            "empty": np.empty((0, 4), np.int8),
        },
        {"y": (2, 3)},
        {"n": 7, "flag": True, "eps": 1e-8, "sizes": (2, 3), "low": -np.inf},
    )
    first, in_file = SharedArrays(tmp_path).inputs(KEY, lambda: drawn)
    again, also = SharedArrays(tmp_path).inputs(KEY, never)
    assert in_file
    assert also
    for inputs in (first, again):
        assert bits(inputs) == bits(drawn)
        assert [(name, one.shape, one.dtype) for name, one in inputs.arrays.items() if one is not None] == [
            (name, one.shape, one.dtype) for name, one in drawn.arrays.items() if one is not None
        ]
        assert (inputs.outputs, inputs.scalars) == (drawn.outputs, drawn.scalars)
        assert type(inputs.scalars["flag"]) is bool
        assert not inputs.arrays["x"].flags.writeable  # type: ignore[union-attr]


def test_other_keys_have_other_inputs(tmp_path: Path) -> None:
    shared = SharedArrays(tmp_path)
    for number in range(3):
        x = np.full(4, number, np.float32)
        shared.inputs((*KEY, number), lambda x=x: Inputs({"x": x}, {}, {}))  # type: ignore[misc]
    for number in range(3):
        inputs, _ = shared.inputs((*KEY, number), never)
        assert (inputs.arrays["x"] == number).all()  # type: ignore[union-attr]


def test_expectations_come_back_with_what_else_is_accepted(tmp_path: Path) -> None:
    one, other = np.linspace(0, 1, 6).reshape(2, 3), np.zeros((2, 3))

    def right() -> Mapping[str, Expectation]:
        ids = np.arange(5)
        return {
            "y": Expectation(
                (Candidate(one, other), Candidate(other, one)),
                np.array([True, False]),
                lambda: (Candidate(one + 1, other),),
            ),
            "ids": Expectation((Candidate(ids, np.zeros(5)),)),
        }

    SharedArrays(tmp_path).expectations(KEY, right)
    again, in_file = SharedArrays(tmp_path).expectations(KEY, right)
    assert in_file
    assert [candidate.expected.tobytes() for candidate in again["y"].candidates] == [
        one.tobytes(),
        other.tobytes(),
    ]
    assert again["y"].finite_only is not None
    assert again["y"].finite_only.tolist() == [True, False]
    assert (again["y"].further()[0].expected == one + 1).all()
    assert again["ids"].candidates[0].expected.dtype.kind == "i"
    assert again["ids"].finite_only is None


def test_what_there_is_no_room_for_is_made_by_each(tmp_path: Path) -> None:
    drawn = Inputs({"x": np.zeros(1000, np.float32)}, {}, {})
    for _ in range(2):
        assert not SharedArrays(tmp_path, 4000).inputs(KEY, lambda: drawn)[1]
    assert SharedArrays(tmp_path, 8000).inputs(KEY, lambda: drawn)[1]
    assert not SharedArrays(tmp_path, 8000).inputs((*KEY, 2), lambda: drawn)[1]


def test_columns_that_lie_apart_are_not_stored_as_another_layout_may_round_otherwise(tmp_path: Path) -> None:
    drawn = Inputs({"x": np.zeros((4, 5), np.float32).T}, {}, {})
    inputs, in_file = SharedArrays(tmp_path).inputs(KEY, lambda: drawn)
    assert inputs is drawn
    assert not in_file


def test_of_several_that_need_the_same_one_makes_it(tmp_path: Path) -> None:
    made, together = [], Barrier(4)

    def draw() -> Inputs:
        made.append(1)
        return Inputs({"x": np.zeros(4, np.float32)}, {}, {})

    def needs(_: int) -> bool:
        together.wait()
        return SharedArrays(tmp_path).inputs(KEY, draw)[1]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(needs, range(4)))
    assert len(made) == 1


def _counted(problem: KernelProblem, calls: list[str]) -> KernelProblem:
    def inputs(case: Case) -> Inputs:
        calls.append("inputs")
        return problem.inputs(case)

    def oracle(case: Case, given: Inputs) -> Mapping[str, Expectation]:
        calls.append("oracle")
        return problem.oracle(case, given)

    return replace(problem, inputs=inputs, oracle=oracle)


@pytest.mark.parametrize("name", ["softmax_forward", "layernorm_backward"])
def test_a_second_process_works_out_nothing_of_a_large_case(tmp_path: Path, name: str) -> None:
    problem = KERNELS[name]
    assert problem.space is not None
    case = next(
        replace(case, at_places=True)
        for case in problem.cases(3)
        if case.group == MAGNITUDES and problem.space.elements(case.sizes) > MANY
    )
    inputs = problem.inputs(case)
    right = problem.oracle(case, inputs)
    got = {name: one.candidates[0].expected.astype(np.float32) for name, one in right.items()}
    plain = right_at_places(problem, case, inputs, got)
    for number in range(2):
        calls: list[str] = []
        judged = remembered(
            remembered(_counted(problem, calls), None, SharedArrays(tmp_path), problem.id)  # type: ignore[arg-type]
        )
        compared = right_at_places(judged, case, judged.inputs(case), got)
        whole = judged.oracle(case, judged.inputs(case))
        for output, expectation in whole.items():
            for a, b in zip(expectation.candidates, right[output].candidates, strict=True):
                assert a.expected.tobytes() == b.expected.tobytes()
                assert a.allowed.tobytes() == b.allowed.tobytes()
        assert bool(calls) == (number == 0)
        assert (compared is None) == (plain is None)
        for output, comparison in (plain or {}).items():
            assert compared is not None
            seen = compared[output]
            assert (seen.max_error, seen.allowed, seen.total) == (
                comparison.max_error,
                comparison.allowed,
                comparison.total,
            )
