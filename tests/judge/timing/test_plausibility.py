from __future__ import annotations

import math
from dataclasses import replace

import pytest

from grader.judge.timing.plausibility import reasons
from grader.judge.timing.statistics import Block, CaseTimes

SWEEP = 1e-3
HONEST = CaseTimes(
    case="16384 x 4096",
    method="graph",
    slots=4,
    blocks=(Block("ABBA", (4 * SWEEP, SWEEP, SWEEP, 4 * SWEEP)),) * 20,
    same=(Block("ABBA", (4 * SWEEP,) * 4),) * 20,
    stream=(0.95 * SWEEP,) * 20,
    novel=(1.01 * SWEEP,),
    batches=tuple(
        (one, length, 2e-4 + length * (5e-4 + {"submission": 1, "baseline": 4, "nothing": 0}[one] * SWEEP))
        for arm in ("submission", "baseline")
        for length in range(6, 15)
        for one in ((arm, "nothing") if length % 2 else ("nothing", arm))
    ),
    verified=16,
    wrong=0,
)


def faster(case: CaseTimes, factor: float) -> CaseTimes:
    """The runner's clock tells less; the judge's stays."""
    block = Block("ABBA", (4 * SWEEP, SWEEP / factor, SWEEP / factor, 4 * SWEEP))
    return replace(case, blocks=(block,) * 20, novel=(SWEEP / factor,))


def test_honest_times_are_believed() -> None:
    assert reasons(HONEST) == ()


def test_a_kernel_at_the_ceiling_is_believed() -> None:
    assert reasons(replace(HONEST, stream=(1.1 * SWEEP,) * 20)) == ()


def test_faster_than_memory_is_not() -> None:
    (reason,) = reasons(replace(HONEST, stream=(1.5 * SWEEP,) * 20))
    assert reason.startswith("16384 x 4096: 1000 us for what the device needs 1500 us")


@pytest.mark.parametrize(("call", "believed"), [(1.55e-6, True), (1.45e-6, False)])
def test_a_short_call_may_be_a_quarter_of_a_microsecond_faster(*, call: float, believed: bool) -> None:
    sweep = 128 * call
    block = Block("ABBA", (4 * SWEEP, sweep, sweep, 4 * SWEEP))
    short = replace(HONEST, slots=128, blocks=(block,) * 20, novel=(sweep,), stream=(128 * 2.2e-6,) * 20)
    found = [reason for reason in reasons(short) if "at full bandwidth" in reason]
    assert not found if believed else found


def test_end_to_end_times_have_no_such_floor() -> None:
    assert reasons(replace(HONEST, method="host", stream=(1.5 * SWEEP,) * 20)) == ()


def test_a_runner_whose_clock_lags_behind_the_judges_is_not() -> None:
    (reason,) = reasons(replace(faster(HONEST, 2), stream=(0.4 * SWEEP,) * 20))
    assert "500 us reported, but 1000 us by the judge's clock" in reason


def test_a_baseline_that_the_judges_clock_never_saw_so_slow_is_not() -> None:
    block = Block("ABBA", (8 * SWEEP, SWEEP, SWEEP, 8 * SWEEP))
    (reason,) = reasons(replace(HONEST, blocks=(block,) * 20))
    assert "8000 us reported for the baseline, but 4000 us by the judge's clock" in reason


def test_the_judges_clock_accuses_nobody_by_what_it_varies_by() -> None:
    """Restoring the inputs can take longer than the sweep; where it varies, little can be said."""
    loud = tuple(
        (arm, length, seconds + (length * 2 * SWEEP if number % 4 == 0 else 0))
        for number, (arm, length, seconds) in enumerate(HONEST.batches)
    )
    assert reasons(replace(HONEST, batches=loud)) == ()
    once = ((HONEST.batches[0][0], 6, 0.0001), *HONEST.batches[1:])
    (reason,) = reasons(replace(faster(HONEST, 2), stream=(0.4 * SWEEP,) * 20, batches=once))
    assert "1000 us by the judge's clock" in reason


@pytest.mark.parametrize("arm", ["submission", "baseline", "nothing"])
def test_a_third_of_slow_batches_accuses_nobody(arm: str) -> None:
    slow = tuple(
        (one, length, seconds + (length * 2 * SWEEP if one == arm and length % 3 == 0 else 0))
        for one, length, seconds in HONEST.batches
    )
    assert reasons(replace(HONEST, batches=slow)) == ()


def test_results_kept_from_earlier_calls_show_on_new_contents() -> None:
    (reason,) = reasons(replace(HONEST, novel=(2 * SWEEP, 1.9 * SWEEP)))
    assert "1900 us on contents never seen before" in reason


@pytest.mark.parametrize(("factor", "believed"), [(1.2, True), (1.4, False)])
def test_new_contents_may_take_a_quarter_longer(*, factor: float, believed: bool) -> None:
    assert (reasons(replace(HONEST, novel=(factor * SWEEP,))) == ()) == believed


def test_one_slow_call_on_new_contents_accuses_nobody_that_was_fast_on_others() -> None:
    assert reasons(replace(HONEST, novel=(2 * SWEEP, SWEEP))) == ()


@pytest.mark.parametrize(
    ("alone", "believed"),
    [((0.25,), True), ((0.32,), True), ((1.0, 0.3), True), ((0.4, 0.5), False), ((1.0,), False)],
)
@pytest.mark.parametrize("apart", [0.0, 0.1])
def test_a_first_call_that_takes_longer_than_one_of_all_has_worked_for_others(
    *, alone: tuple[float, ...], apart: float, believed: bool
) -> None:
    stopped = ((2, 2 * SWEEP), *((1, (share + apart) * SWEEP) for share in alone))
    case = replace(HONEST, stopped=stopped, first=((0.95 / 4 + apart) * SWEEP,))
    found = reasons(case)
    assert (found == ()) == believed
    assert believed or "us for a first call, but 250 us for one of 4" in found[0]


@pytest.mark.parametrize(
    ("method", "more", "believed"),
    [("graph", 14e-6, True), ("graph", 16e-6, False), ("events", 49e-6, True), ("events", 51e-6, False)],
)
def test_a_first_call_may_wait_for_its_code_and_for_a_host_that_makes_it(
    *, method: str, more: float, believed: bool
) -> None:
    case = replace(HONEST, method=method, first=(0.95 / 4 * SWEEP,), stopped=((1, 1.25 * SWEEP / 4 + more),))
    assert (reasons(case) == ()) == believed


def test_outputs_that_are_there_before_their_call_are_counted() -> None:
    (reason,) = reasons(replace(HONEST, early=2))
    assert "2 outputs were written before their call" in reason


def test_wrong_outputs_of_timed_calls_are_counted() -> None:
    (reason,) = reasons(replace(HONEST, wrong=3))
    assert "3 of 16 outputs" in reason


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_times_that_no_clock_shows_are_not_even_compared(bad: float) -> None:
    (reason,) = reasons(replace(HONEST, blocks=(Block("ABBA", (1, 1, bad, 1)),)))
    assert "not a positive number" in reason


@pytest.mark.parametrize(("told", "believed"), [(4 * SWEEP, True), (6 * SWEEP, False)])
def test_the_baseline_is_held_against_batches_of_as_few_calls(*, told: float, believed: bool) -> None:
    quarter = {"submission": 1.0, "baseline": 1.0, "nothing": 0.0}
    batches = tuple(
        (arm, length, 2e-4 + length * (5e-4 + quarter[arm] * SWEEP)) for arm, length, _ in HONEST.batches
    )
    block = Block("ABBA", (told, SWEEP, SWEEP, told))
    case = replace(HONEST, blocks=(block,) * 20, batches=batches, baseline_calls=1)
    found = [reason for reason in reasons(case) if "reported for the baseline" in reason]
    assert not found if believed else found
