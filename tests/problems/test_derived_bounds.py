"""Bounds from a formula allow right kernels, little more than those by hand, and no half precision."""

from __future__ import annotations

import pytest
from problems.derived_bounds import DERIVED, compared

from grader.judge.correctness.comparison import compare


@pytest.mark.parametrize("name", DERIVED)
def test_derived_bounds_stand_beside_those_by_hand(name: str) -> None:
    for output, one in compared(name, most=1).items():
        assert one.right < 0.5, f"{output}: a right kernel uses {one.right:.2f} of what is allowed"
        assert one.ratio.max() <= 20, f"{output}: {one.ratio.max():.1f} times the bound by hand"
        assert one.half > 1, f"{output}: half precision inside uses {one.half:.2f} of what is allowed"


@pytest.mark.parametrize("name", DERIVED)
def test_zeros_are_wrong_in_the_derived_cases(name: str) -> None:
    asked = DERIVED[name]
    small = [case for case in asked.cases(2) if asked.minimal_bytes(case) < 20_000]
    for case in {case.group: case for case in small if case.distribution == "normal"}.values():
        expected = asked.oracle(case, asked.inputs(case))
        for output, one in expected.items():
            zeros = 0 * one.candidates[0].expected.astype("float32")
            one_element = output in {"vars", "means"} or one.candidates[0].expected.shape[-1] == 1
            assert one_element or not compare(output, one, zeros).right, case.name
