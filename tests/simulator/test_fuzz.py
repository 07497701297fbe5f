"""The sim survives PTX that no compiler writes."""

import random

import fuzz
import pytest

from grader.simulator.driver import Simulator


def test_sim_refuses_or_runs_whatever_it_is_given() -> None:
    ends, failures = fuzz.fuzz(10.0, seed=0)
    assert failures == []
    assert set(ends) == {"refused", "fault", "ran"}


def test_a_death_is_told_with_its_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = fuzz.attempt

    def die(simulator: Simulator, ptx: str, source: random.Random) -> str:
        simulator.kill()
        return attempt(simulator, ptx, source)

    monkeypatch.setattr(fuzz, "attempt", die)
    _, failures = fuzz.fuzz(0.2, seed=7)
    assert failures[0][0] == 7
    assert "died of signal 9" in failures[0][1]
