"""Where a tier is wrong, and which inputs are there."""

from __future__ import annotations

import math
from random import Random
from typing import TYPE_CHECKING

import pytest

from grader.problems.distributions import build_case
from grader.problems.problem import Range, Space
from grader.soundness.intervals import BUDGET, Interval, Limit, log_uniform

if TYPE_CHECKING:
    from collections.abc import Mapping

RANGES = {"rows": Range(1, 1 << 21), "width": Range(4, 8192, 4)}


def elements(sizes: Mapping[str, int]) -> int:
    return 2 * sizes["rows"] * sizes["width"]


SPACE = Space(RANGES, ("normal",), elements, build_case)
ROWS, WIDTH, BOTH = ("rows",), ("width",), ("rows", "width")


def within(*limits: tuple[tuple[str, ...], int, int | None]) -> Interval:
    return Interval(tuple(Limit(" * ".join(sizes), sizes, low, high) for sizes, low, high in limits))


@pytest.mark.parametrize(
    ("interval", "smallest"),
    [
        (within((ROWS, 100, 200)), {"rows": 100, "width": 4}),
        (within((WIDTH, 101, 200)), {"rows": 1, "width": 104}),
        (within((WIDTH, 101, 104)), None),
        (within((WIDTH, 9000, None)), None),
        (within((BOTH, 50_000, None)), {"rows": 12_500, "width": 4}),
        (within((BOTH, 50_001, 50_003)), None),
        (within((ROWS, 300, None), (WIDTH, 500, None)), {"rows": 300, "width": 500}),
        (within((ROWS, 300, None), (("width", "width"), 100, None)), {"rows": 300, "width": 12}),
        (within(((), 300, None)), {"rows": 1, "width": 4}),
    ],
    ids=str,
)
def test_the_smallest_sizes_within(interval: Interval, smallest: Mapping[str, int] | None) -> None:
    assert interval.smallest(SPACE) == smallest


def test_sizes_are_drawn_within_the_interval_and_the_budget() -> None:
    for interval in (within((ROWS, 1000, 1100), (WIDTH, 64, None)), within((BOTH, 5000, 20_000))):
        drawn = interval.drawn(SPACE, Random(1))
        assert len(drawn) == 6
        assert all(interval.holds(sizes) and elements(sizes) <= BUDGET for sizes in drawn)
        assert all(sizes[name] in one for sizes in drawn for name, one in RANGES.items())
        assert [*map(elements, drawn)] == sorted(map(elements, drawn))


def test_an_interval_can_be_beyond_the_budget() -> None:
    large = within((ROWS, 1 << 20, None), (WIDTH, 64, None))
    assert large.smallest(SPACE) is not None
    assert not large.in_budget(SPACE)
    assert large.drawn(SPACE, Random(1)) == ()
    assert within((ROWS, 1 << 20, None)).in_budget(SPACE)


def test_an_interval_reads_as_a_condition() -> None:
    assert (
        str(within((ROWS, 1000, 2000), (BOTH, 5000, None)))
        == "1,000 <= rows < 2,000 and rows * width >= 5,000"
    )


def test_every_octave_is_as_likely() -> None:
    random = Random(1)
    drawn = [log_uniform(random, 1, (1 << 10) - 1) for _ in range(10_000)]
    octaves = [sum(math.log2(one) // 1 == octave for one in drawn) for octave in range(10)]
    assert sum(octaves) == 10_000
    assert min(octaves) > 800
    assert {log_uniform(random, 0, 1) for _ in range(100)} == {0, 1}
