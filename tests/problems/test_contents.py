"""Contents that grids alone have: zeros of both signs, subnormal numbers, several long segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.problems.contents import IN_GRIDS, REPEATING, SIGNED, SOME_LONG, SUBNORMAL, Content, offsets, real
from grader.problems.formula import Range, problem
from grader.problems.grid import MAGNITUDES

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCALED = problem(
    id="scale",
    file="scale.cu",
    launcher="launch_scale(float* y, const float* x, int n, cudaStream_t stream)",
    formula=lambda x: 2 * x,
    inputs=lambda n: {"x": real(n)},
    sizes={"n": Range(1, 1 << 16)},
)


def drawn(content: Content, distribution: str, dtype: str = "float32", seed: int = 1) -> NDArray[np.float64]:
    return content.drawn(np.random.default_rng(seed), dtype, distribution).astype(np.float64)


def test_zeros_of_both_signs_begin_with_negative_ones() -> None:
    numbers = drawn(real(1000), SIGNED)
    assert set(numbers.tolist()) == {-1.0, 0.0}
    negative = np.signbit(numbers[numbers == 0])
    assert negative[0]
    assert not negative[-1]
    assert (np.diff(negative.astype(int)) != 0).sum() == 1


@pytest.mark.parametrize(
    ("dtype", "normal"),
    [("float16", 2.0**-14), ("bfloat16", 2.0**-126), ("float32", 2.0**-126), ("float64", 2.0**-1022)],
)
def test_subnormal_numbers_are_smaller_than_any_normal_one(dtype: str, normal: float) -> None:
    numbers = np.abs(drawn(real(1000), SUBNORMAL, dtype))
    assert numbers.max() < normal
    assert (numbers > 0).mean() > 0.9


def test_numbers_that_repeat_are_few() -> None:
    assert len(np.unique(drawn(real(1000), REPEATING))) == 5


def test_segments_that_are_long_are_of_any_number_and_hold_all() -> None:
    counts = []
    for seed in range(20):
        starts = drawn(offsets(5000, 300), SOME_LONG, "int32", seed)
        assert (starts[0], starts[-1]) == (0, 5000)
        lengths = np.diff(starts)
        held = lengths[lengths > 0]
        assert held.max() - held.min() <= 1
        counts.append(len(held))
    assert min(counts) < 10
    assert max(counts) > 100


def test_a_grid_alone_has_these_contents() -> None:
    cases = SCALED.cases(3)
    assert not IN_GRIDS & {case.distribution for case in cases if case.group != MAGNITUDES}
    assert IN_GRIDS - {SOME_LONG} <= {case.distribution for case in cases if case.group == MAGNITUDES}
