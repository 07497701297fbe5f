"""What the experiments on the judge of speed conclude from what they measured."""

from __future__ import annotations

import pytest
from experiments import both


@pytest.mark.parametrize(
    ("apart", "least", "most"),
    [
        pytest.param(0.01, 0.0, 0.001, id="by what the margin covers"),
        pytest.param(0.04, 0.9, 1.0, id="by much more"),
    ],
)
def test_processes_that_differ_by_more_than_they_show_give_both_verdicts(
    apart: float, least: float, most: float
) -> None:
    low, high = ((middle, middle - 0.002, middle + 0.002, 0.001) for middle in (0.0, apart))
    gradings = [[low, high, low, high], [high, low, high, low]] * 5
    assert least <= both(gradings, 30) <= most
