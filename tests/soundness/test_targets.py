"""Whether a target can be reached, from times that are given."""

from __future__ import annotations

import pytest

from grader.assignments.rules import ProblemPoints
from grader.records.record import PerformanceResult, TimedCase
from grader.records.verdict import Verdict
from grader.soundness.targets import target_row

NOT_MEASURED = PerformanceResult(verdict=Verdict.NOT_MEASURED, target=1, message="not measured: no GPU here.")


def entry(target: float, performance: float = 8.0) -> ProblemPoints:
    return ProblemPoints(id="scale", title="", correctness=12, performance=performance, target=target)


def measured(speedup: float, low: float) -> PerformanceResult:
    case = TimedCase(name="large", verdict=Verdict.PASS, baseline_us=120.0, yours_us=120.0 / speedup)
    return PerformanceResult(
        verdict=Verdict.PASS, target=1, speedup=speedup, interval=(low, 2 * speedup - low), cases=[case]
    )


def test_a_target_with_room_is_sound() -> None:
    sound, said = target_row(entry(2.0), measured(4.0, 3.9), {"naive": measured(1.5, 1.4)})
    assert sound
    assert said == (
        "target 2x is reached with 95% to spare; reference 4.00x (baseline and reference, large: 120.0 and "
        "30.0 us); naive 1.50x; suggested: 3.1x"
    )


@pytest.mark.parametrize("target", [3.6, 4.5])
def test_a_target_that_the_reference_hardly_or_never_reaches_is_not(target: float) -> None:
    sound, said = target_row(entry(target), measured(4.0, 3.9), {})
    assert sound is False
    assert said.startswith(f"target {target}x is out of reach or has no room: ")
    assert said.endswith("suggested: 3.1x")


@pytest.mark.parametrize(
    ("target", "low", "sound"),
    [(0.7, 0.78, True), (0.7, 0.76, False), (0.9, 0.995, True), (0.9, 0.98, False)],
)
def test_a_share_of_the_limit_is_reached_with_a_tenth_to_spare_too(
    target: float, low: float, sound: bool
) -> None:
    share = entry(target).model_copy(update={"measure": "share_of_limit"})
    assert target_row(share, measured(low + 0.01, low), {})[0] is sound


@pytest.mark.parametrize("measure", ["share_of_limit", "share_of_arithmetic"])
@pytest.mark.parametrize(("low", "sound"), [(0.98, True), (0.97, False)])
def test_where_a_tenth_is_beyond_the_limit_it_is_half_of_the_way_there(
    low: float, sound: bool, measure: str
) -> None:
    share = entry(0.95).model_copy(update={"measure": measure})
    assert target_row(share, measured(0.99, low), {})[0] is sound


def test_the_slowest_variant_stands_for_a_naive_one() -> None:
    variants = {"a": measured(3.0, 2.9), "b": measured(1.2, 1.1), "c": NOT_MEASURED}
    assert "; b 1.20x; " in target_row(entry(2.0), measured(4.0, 3.9), variants)[1]


@pytest.mark.parametrize(
    ("naive", "said"),
    [
        (1.9, "target 2x is reached with 95% to spare; reference"),
        (2.0, "to spare, also by naive, which the suggested one tells from the reference; reference"),
        (3.2, "to spare, also by naive, which is nearly as fast as the reference; reference"),
    ],
)
def test_a_target_that_a_naive_kernel_reaches_is_remarked(naive: float, said: str) -> None:
    sound, row = target_row(entry(2.0), measured(4.0, 3.9), {"naive": measured(naive, naive - 0.1)})
    assert sound
    assert said in row


def test_without_a_gpu_nothing_is_said() -> None:
    assert target_row(entry(2.0), NOT_MEASURED, {}) == (None, "not measured: no GPU here.")


def test_without_points_for_speed_no_target_is_asked_for() -> None:
    for speed in (NOT_MEASURED, measured(0.5, 0.4)):
        assert target_row(entry(2.0, performance=0.0), speed, {}) == (True, "no speed is asked for")
