"""Inputs and oracles that many submissions share: computed once, never mixed up, never changed."""

from __future__ import annotations

import weakref
from dataclasses import replace

import numpy as np
import pytest
from first_assignment import KERNELS

from grader.judge.correctness.remembered import Room, remembered
from grader.problems.problem import Case, Inputs

PROBLEM = KERNELS["softmax_backward"]


def test_what_is_remembered_is_what_would_be_computed() -> None:
    shared = remembered(PROBLEM)
    for case in PROBLEM.cases(3)[:3]:
        for again in (case, replace(case, seed=case.seed + 1)):
            fresh = PROBLEM.inputs(again)
            given = shared.inputs(again)
            assert shared.inputs(again) is given
            for name, array in fresh.arrays.items():
                np.testing.assert_array_equal(given.arrays[name], array)
            expected = shared.oracle(again, given)
            assert shared.oracle(again, given) is expected
            for name, right in PROBLEM.oracle(again, fresh).items():
                np.testing.assert_array_equal(
                    expected[name].candidates[0].expected, right.candidates[0].expected
                )


def test_other_inputs_than_the_remembered_ones_get_an_oracle_of_their_own() -> None:
    shared = remembered(PROBLEM)
    case = PROBLEM.cases(3)[0]
    before = shared.oracle(case, shared.inputs(case))
    given = shared.inputs(case)
    negated = Inputs(
        {**given.arrays, "out_grad": -given.arrays["out_grad"]},  # type: ignore[operator]
        given.outputs,
        given.scalars,
    )
    name = next(iter(before))
    assert (
        shared.oracle(case, negated)[name].candidates[0].expected == -before[name].candidates[0].expected
    ).all()


def test_nobody_can_change_what_the_next_submission_meets() -> None:
    shared = remembered(PROBLEM)
    case: Case = PROBLEM.cases(3)[0]
    given = shared.inputs(case)
    arrays = [array for array in given.arrays.values() if array is not None]
    arrays += [right.candidates[0].expected for right in shared.oracle(case, given).values()]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_what_there_is_no_room_for_is_computed_anew() -> None:
    first, second = PROBLEM.cases(3)[:2]
    size = sum(array.nbytes for array in PROBLEM.inputs(first).arrays.values() if array is not None)
    shared = remembered(PROBLEM, Room(size))
    given, other = shared.inputs(first), shared.inputs(second)
    assert shared.inputs(first) is given
    assert shared.inputs(second) is other
    forgotten = weakref.ref(other)
    del other
    assert forgotten() is None
    expected = shared.oracle(first, given)
    assert shared.oracle(first, given) is not expected
    for name, array in PROBLEM.inputs(second).arrays.items():
        np.testing.assert_array_equal(shared.inputs(second).arrays[name], array)


def test_large_inputs_are_kept_as_long_as_somebody_has_them() -> None:
    shared = remembered(PROBLEM)
    large = replace(PROBLEM.cases(3)[0], sizes={"rows": 1024, "softmax_len": 1024}, at_places=True)
    first = shared.inputs(large)
    assert shared.inputs(large) is first
    before, forgotten = np.array(first.arrays["out_grad"]), weakref.ref(first)
    del first
    assert forgotten() is None
    np.testing.assert_array_equal(shared.inputs(large).arrays["out_grad"], before)
