"""What chance explains: right samples are called wrong as rarely as is said, and wrong ones are seen."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from grader.problems.checking import CALLS, FALSE_ALARM, follows, frequencies


def uniform(x: np.ndarray) -> np.ndarray:
    return np.clip(x, 0, 1)


def test_a_grading_takes_points_from_right_samples_once_in_a_billion() -> None:
    assert CALLS * FALSE_ALARM <= 1e-9


def test_right_samples_are_called_wrong_no_more_often_than_is_said() -> None:
    random = np.random.default_rng(1)
    for size in (1, 2, 10, 1000):
        wrong = sum(follows(random.random(size), uniform, 0.05) != "" for _ in range(2000))
        assert wrong <= 2000 * 0.05 + 3 * (2000 * 0.05) ** 0.5, size


@pytest.mark.parametrize("probability", [0.02, 0.3, 0.5])
@pytest.mark.parametrize("draws", [1, 5, 40])
def test_no_count_of_the_exact_interval_is_called_wrong(probability: float, draws: int) -> None:
    false_alarm = 0.01

    def tail(counts: range) -> float:
        return sum(comb(draws, k) * probability**k * (1 - probability) ** (draws - k) for k in counts)

    refused = [
        count
        for count in range(draws + 1)
        if frequencies([count, draws - count], [probability, 1 - probability], false_alarm)
    ]
    for count in refused:
        assert min(tail(range(count + 1)), tail(range(count, draws + 1))) < false_alarm / 4
    if draws == 40:
        assert refused


def test_samples_of_another_distribution_are_seen() -> None:
    random = np.random.default_rng(2)
    assert follows(random.random(100_000), uniform) == ""
    text = follows(random.random(10_000) ** 1.2, uniform)
    assert "% of 10,000 samples are" in text
    assert "chance explains a difference of 3.9%" in text
    assert follows(np.full(100, 0.5), uniform)
    assert "3 of 10 samples are not finite" in follows([np.nan, np.inf, -np.inf, *np.full(7, 0.5)], uniform)
    assert follows([], uniform) == ""


def test_counts_of_other_probabilities_are_seen() -> None:
    random = np.random.default_rng(3)
    assert frequencies(random.multinomial(100_000, [0.1, 0.2, 0.7]), [0.1, 0.2, 0.7]) == ""
    text = frequencies([12_000, 18_000, 70_000], [0.1, 0.2, 0.7], names=["a", "b", "c"])
    assert text.startswith("a was drawn 12,000 times of 100,000, which is 12.00%: 10.00% are expected")
    assert frequencies([1, 0], [0.0, 1.0])  # what cannot be
    assert frequencies([0, 0], [0.5, 0.5]) == ""
