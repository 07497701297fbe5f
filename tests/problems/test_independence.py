"""What falls apart into rows, and what may be rotated, is found from the formula."""

from __future__ import annotations

import numpy as np
import pytest
from problems.formulas import FORMULAS

PARTS = {
    "saxpy": [("y",)],
    "sum_rows": [("total", "first")],
    "mean_square": [("y",)],
    "mean_square_backward": [("x_grad",), ("scale_grad",)],
    "transpose": [("y",)],
    "matmul": [("c",)],
    "embedding": [("y",)],
    "masked_softmax": [("y",)],
    "rope": [],
    "stencil": [],
    "attention": [],
    "histogram": [],
    "sort": [("values", "places")],
    "segments": [],
}
TURNING = {
    "saxpy": {"x", "y"},
    "mean_square_backward": {"y_grad", "x", "x_grad"},
    "histogram": {"keys"},
    "matmul": {"a", "c"},
    "rope": set(),
    "stencil": set(),
    "transpose": set(),
}


@pytest.mark.parametrize("name", PARTS)
def test_outputs_fall_apart_where_each_row_has_its_own_result(name: str) -> None:
    assert [slices.outputs for slices in FORMULAS[name].slices] == PARTS[name]


@pytest.mark.parametrize("name", TURNING)
def test_arrays_turn_together_where_places_do_not_matter(name: str) -> None:
    assert set(FORMULAS[name].turning) == TURNING[name]


@pytest.mark.parametrize("name", [name for name, parts in PARTS.items() if parts])
def test_a_part_alone_is_expected_to_be_what_it_is_in_the_whole(name: str) -> None:
    asked = FORMULAS[name]
    case = next(case for case in asked.cases(4) if case.group == "streams")
    given = asked.inputs(case)
    whole = asked.oracle(case, given)
    for slices in asked.slices:
        count = slices.count(case)
        index = np.unique(np.random.default_rng(1).integers(count, size=5))
        alone = asked.oracle(case, slices.take(given, index))
        for output in slices.outputs:
            got = alone[output].candidates[0].expected
            wanted = whole[output].candidates[0].expected.reshape(count, -1)[index]
            np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-9, atol=1e-12)
