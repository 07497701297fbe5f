"""Contents that grids alone have: zeros of both signs, subnormal numbers, several long segments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.problems.contents import (
    CANCELLING,
    EQUAL,
    FAR_BELOW,
    FIRST_ALIKE,
    IN_GRIDS,
    LAST,
    MOSTLY_EVEN,
    RANK_ONE,
    REPEATING,
    SCALED,
    SECOND_ALIKE,
    SIGNED,
    SOME_LONG,
    SPANNING,
    SPIKE,
    SUBNORMAL,
    TINY_FIRST,
    WHOLE,
    Content,
    Number,
    ascending,
    indices,
    integers,
    offsets,
    real,
    uniform,
)
from grader.problems.formula import Range, problem
from grader.problems.grid import MAGNITUDES

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from grader.problems.problem import KernelProblem


def doubled(content: Callable[[int], Content]) -> KernelProblem:
    return problem(
        id="scale",
        file="scale.cu",
        launcher="launch_scale(float* y, const float* x, int n, cudaStream_t stream)",
        formula=lambda x: 2 * x,
        inputs=lambda n: {"x": content(n)},
        sizes={"n": Range(1, 1 << 16)},
    )


DOUBLED = doubled(real)


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
    ("dtype", "normal", "share"),
    [
        *[("float8_e4m3fn", 2.0**-6, 0.7), ("float8_e5m2", 2.0**-14, 0.4)],  # few numbers are subnormal
        *[("float16", 2.0**-14, 0.9), ("bfloat16", 2.0**-126, 0.9)],
        *[("float32", 2.0**-126, 0.9), ("float64", 2.0**-1022, 0.9)],
    ],
)
def test_subnormal_numbers_are_smaller_than_any_normal_one(dtype: str, normal: float, share: float) -> None:
    numbers = np.abs(drawn(real(1000), SUBNORMAL, dtype))
    assert numbers.max() < normal
    assert (numbers > 0).mean() > share


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 1, 4)])
def test_the_largest_number_of_each_row_and_column_is_its_last(shape: tuple[int, ...]) -> None:
    numbers = drawn(real(*shape), LAST)
    for axis, size in enumerate(shape):
        assert (numbers.argmax(axis) == size - 1).all()
    assert numbers.argmax() == numbers.size - 1


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
    cases = DOUBLED.cases(3)
    assert not IN_GRIDS & {case.distribution for case in cases if case.group != MAGNITUDES}
    assert IN_GRIDS - {SOME_LONG, MOSTLY_EVEN, SPANNING} <= {
        case.distribution for case in cases if case.group == MAGNITUDES
    }


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_numbers_of_every_magnitude_stay_finite_and_lie_in_runs_of_one_magnitude(dtype: str) -> None:
    numbers = np.abs(drawn(real(3, 1000), SCALED, dtype))
    assert np.isfinite(numbers**2).all()
    medians = np.median(numbers.reshape(3, 100, 10), axis=2)
    assert medians.max() > 1e3 * medians[medians > 0].min()
    assert (np.abs(np.log10(medians[:, 1:] / medians[:, :-1])) < 1).mean() > 0.5


def test_integers_span_a_power_of_two_that_is_mostly_one_of_whole_bytes() -> None:
    spans = []
    for seed in range(60):
        numbers = drawn(integers(-(2**31), 2**31 - 1, 500), SPANNING, "int32", seed)
        spans.append(int(numbers.max() - numbers.min()))
    assert all(span.bit_count() == 1 for span in spans)
    assert sum(span in {1 << 8, 1 << 16, 1 << 24} for span in spans) > len(spans) / 3


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 3), (7, 7)])
def test_few_integers_span_what_they_can(low: int, high: int) -> None:
    numbers = drawn(integers(low, high, 20), SPANNING, "int32")
    assert low <= numbers.min() <= numbers.max() <= high


def test_a_scalar_is_drawn_in_grids_alone() -> None:
    asked = problem(
        id="scale",
        file="scale.cu",
        launcher="launch_scale(float* y, const float* x, float a, int n, cudaStream_t stream)",
        formula=lambda x, a: a * x,
        inputs=lambda n: {"x": real(n), "a": Number(2.0, -1.0, 3.0)},
        sizes={"n": Range(1, 1 << 16)},
    )
    cases = asked.cases(3)
    usual = {asked.inputs(case).scalars["a"] for case in cases if case.group != MAGNITUDES}
    in_grids = [asked.inputs(case).scalars["a"] for case in cases if case.group == MAGNITUDES]
    assert usual == {2.0}
    assert len(set(in_grids)) > len(in_grids) / 2
    assert all(-1 <= number <= 3 for number in in_grids)
    assert {-1.0, 0.0, 1.0, 3.0} & set(in_grids)


def test_a_number_of_an_integer_scalar_is_an_integer_in_every_case() -> None:
    asked = problem(
        id="hash",
        file="hash.cu",
        launcher="launch_hash(unsigned int* y, const int* x, unsigned int seed, double scale, int n)",
        formula=lambda x, seed: x * seed,
        inputs=lambda n: {
            "x": integers(0, 9, n),
            "seed": Number(3, 0, (1 << 32) - 1),
            "scale": Number(1, 0, 9),
        },
        sizes={"n": Range(1, 100)},
    )
    scalars = [asked.inputs(case).scalars for case in asked.cases(1)]
    assert {type(of_case["seed"]) for of_case in scalars} == {int}
    assert {type(of_case["scale"]) for of_case in scalars} == {float}
    assert len({of_case["seed"] for of_case in scalars}) > 5


@pytest.mark.parametrize(
    ("content", "dtype"),
    [
        (real(4, 64), "float32"),
        (integers(0, 1 << 20, 4, 64), "int32"),
        (indices(1 << 20, 4, 64), "int32"),
    ],
)
def test_what_a_kernel_may_take_for_a_sample_is_alike(content: Content, dtype: str) -> None:
    first = drawn(content, FIRST_ALIKE, dtype)
    assert np.unique(first[0]).size == 1
    assert np.unique(first[1:]).size > 100
    second = drawn(content, SECOND_ALIKE, dtype).reshape(-1)
    assert sorted(np.unique(second[begin::2]).size > 100 for begin in (0, 1)) == [False, True]


def test_a_quarter_of_a_vector_is_alike_at_first() -> None:
    numbers = drawn(real(400), FIRST_ALIKE)
    assert np.unique(numbers[:100]).size == 1
    assert np.unique(numbers[100:]).size > 100


@pytest.mark.parametrize("count", [1, 2, 3, 300])
def test_segments_are_mostly_of_one_length(count: int) -> None:
    borders = drawn(offsets(20 * count, count), MOSTLY_EVEN, "int32")
    lengths = np.diff(borders)
    assert (borders[0], borders[-1]) == (0, 20 * count)
    assert lengths.min() >= 0
    assert (lengths != 20).sum() <= 6
    if count == 300:
        assert (lengths != 20).any()


@pytest.mark.parametrize(
    ("content", "mark", "held"),
    [
        (real, -2.5, [[-2.5] * 4, [-2.5, 0, 0, 0]]),
        (real, 1e12, [[1e12, 0, 0, 0]]),  # a sum of such numbers may be too large for its type
        (real, 1e30, []),
        (partial(uniform, -1.0, 1.0), -0.25, [[-0.25] * 4]),
        (partial(uniform, -1.0, 1.0), -2.5, []),
    ],
)
def test_inputs_hold_a_number_of_the_code_where_they_may(
    content: Callable[[int], Content], mark: float, held: list[list[float]]
) -> None:
    asked = doubled(content)
    cases = asked.space.marked("marked", {"n": 4}, mark, 5)
    assert [asked.inputs(case).arrays["x"].tolist() for case in cases] == np.float32(held).tolist()  # type: ignore[union-attr]
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize(("mark", "holds"), [(-7.0, True), (-11.0, False), (2.5, False)])
def test_integers_hold_a_whole_number_between_their_ends(mark: float, *, holds: bool) -> None:
    content = integers(-10, 10, 3)
    assert content.can_hold(mark, "int32", EQUAL) is holds
    numbers = content.marked(np.zeros(3, np.int32), mark, "int32", EQUAL)
    assert (numbers == (mark if holds else 0)).all()


def test_one_number_of_each_row_is_unlike_all_others() -> None:
    for row in drawn(real(5, 400), SPIKE):
        assert sorted(np.unique(row, return_counts=True)[1].tolist()) == [1, 399]
    numbers = drawn(integers(-(1 << 30), 1 << 30, 500), SPIKE, "int32")
    close = np.abs(numbers - np.median(numbers)) < 256
    assert np.count_nonzero(~close) == 1


@pytest.mark.parametrize(("dtype", "least"), [("float32", 2.0**31), ("float16", 20_000)])
def test_a_thousand_whole_numbers_are_more_than_an_int_holds(dtype: str, least: float) -> None:
    numbers = drawn(real(1100), WHOLE, dtype)
    assert (numbers == np.round(numbers)).all()
    assert numbers.sum() > least


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_the_first_number_is_far_below_or_the_first_half_is_tiny(dtype: str) -> None:
    numbers = drawn(real(64), FAR_BELOW, dtype)
    assert numbers[0] < 20 * numbers[1:].min()
    numbers = np.abs(drawn(real(64), TINY_FIRST, dtype))
    assert 10 * numbers[:32].max() < np.median(numbers[32:])


def test_a_matrix_is_a_product_of_vectors_up_to_a_thousandth() -> None:
    numbers = drawn(real(12, 9), RANK_ONE)
    left, values, right = np.linalg.svd(numbers)
    nearest = values[0] * np.outer(left[:, 0], right[0])
    assert 1e-4 < np.abs(numbers / nearest - 1).max() < 2e-3


def test_numbers_that_cancel_have_zeros_around_them() -> None:
    numbers = drawn(real(3, 41), CANCELLING).reshape(-1)
    assert np.count_nonzero(numbers) == 2 * (numbers.size // 4)
    assert not np.add.reduceat(numbers, np.arange(0, numbers.size, 4)).any()
    assert not numbers[::4].any()


def moved(asked: KernelProblem, n: int) -> tuple[np.ndarray, np.ndarray]:
    """An input of a case and that of a similar one."""
    case = asked.space.case("sizes", {"n": n}, "normal", 5)
    similar = asked.similar(case, 1)
    assert similar is not None
    return asked.inputs(case).arrays["x"], asked.inputs(similar).arrays["x"]  # type: ignore[return-value]


@pytest.mark.parametrize("content", [real, partial(integers, -1000, 1000), partial(indices, 5000)])
def test_in_a_similar_case_some_inner_numbers_have_changed_places(content: Callable[..., Content]) -> None:
    before, after = moved(doubled(content), 500)
    assert 2 <= np.count_nonzero(before != after) <= 4
    assert sorted(before.tolist()) == sorted(after.tolist())
    assert (before[0], before[-1]) == (after[0], after[-1])


def test_in_a_similar_case_some_borders_between_segments_have_moved() -> None:
    before, after = moved(doubled(lambda n: offsets(3000, n)), 100)
    assert 1 <= np.count_nonzero(before != after) <= 6
    assert np.abs(before - after).max() > 1
    assert (np.diff(after) >= 0).all()
    assert (after[0], after[-1]) == (0, 3000)


def test_numbers_that_belong_where_they_are_stay() -> None:
    before, after = moved(doubled(lambda n: ascending(real(n))), 500)
    assert (before == after).all()


@pytest.mark.parametrize(("n", "distribution"), [(500, EQUAL), (20, "normal")])
def test_what_is_small_or_alike_has_no_similar_case(n: int, distribution: str) -> None:
    assert DOUBLED.similar(DOUBLED.space.case("sizes", {"n": n}, distribution, 5), 1) is None
