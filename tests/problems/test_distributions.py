"""Numbers of large arrays come in blocks: in any number of threads the same, and each block has its own."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pytest

from grader.problems import distributions
from grader.problems.contents import integers, real, uniform
from grader.problems.distributions import generator, normal

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK = 1000
SHAPE = (7, 503)

DRAWS: dict[str, Callable[[int], np.ndarray]] = {
    "normal": lambda seed: normal(generator(seed), SHAPE),
    "real": lambda seed: real(*SHAPE).drawn(generator(seed), "float32", "normal"),
    "half": lambda seed: real(*SHAPE).drawn(generator(seed), "float16", "large offset"),
    "double": lambda seed: real(*SHAPE).drawn(generator(seed), "float64", "normal"),
    "uniform": lambda seed: uniform(-1, 1, *SHAPE).drawn(generator(seed), "float32", "normal"),
    "integers": lambda seed: integers(-(2**31), 2**31 - 1, *SHAPE).drawn(generator(seed), "int32", "normal"),
}


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "BLOCK", BLOCK)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_in_any_number_of_threads(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    for count in (1, 2, 9):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        drawn.append(DRAWS[name](5))
    assert all(one.shape == SHAPE and one.tobytes() == drawn[0].tobytes() for one in drawn)
    assert DRAWS[name](6).tobytes() != drawn[0].tobytes()


@pytest.mark.usefixtures("blocks")
def test_blocks_are_independent() -> None:
    numbers = normal(generator(5), (8 * BLOCK,)).reshape(8, BLOCK)
    alike = np.corrcoef(numbers)
    assert np.abs(alike - np.eye(8)).max() < 0.2
    assert abs(numbers.mean()) < 0.05
    assert abs(numbers.std() - 1) < 0.05


def test_small_arrays_are_drawn_as_before() -> None:
    whole = generator(5).standard_normal((3, 4), dtype=np.float32)
    np.testing.assert_array_equal(real(3, 4).drawn(generator(5), "float32", "normal"), whole)
