"""The statistics on synthetic times with known truth."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict, replace

import pytest
from simulated_machine import Machine, graded

from grader.judge.timing.statistics import (
    LOOKS,
    PROCESSES,
    Block,
    CaseTimes,
    Goal,
    Interval,
    clear,
    combined,
    conclude,
    decide,
    floor,
    from_samples,
    interval,
    pooled,
    rank,
    ranks_of_looks,
    spent,
    to_samples,
    verdict_of_process,
)
from grader.records.verdict import Verdict

PASS, FAIL, AMBIGUOUS = Verdict.PASS, Verdict.FAIL, Verdict.AMBIGUOUS
UNTRUSTED, INFRA = Verdict.UNTRUSTED, Verdict.INFRA_ERROR


TROUBLES = ("", "drift", "heat", "slots", "outliers", "modes", "quantised", "correlated")


@pytest.mark.parametrize(("count", "low"), [(12, 3), (20, 6), (30, 10), (40, 14), (60, 22)])
def test_ranks_are_those_of_the_table(count: int, low: int) -> None:
    assert rank(count) == low


def test_intervals_cover_the_median_as_often_as_they_say() -> None:
    source = random.Random(1)
    covered = [
        own.low <= 0 <= own.high
        for own in (interval([source.gauss(0, 1) ** 3 for _ in range(20)]) for _ in range(4000))
    ]
    assert 0.945 <= sum(covered) / len(covered) <= 0.975


def missed_by_looks() -> list[float]:
    """The probability that an interval of the first, of the first two, ... looks misses the median, exactly.

    Of all ways in which values may lie above and below it: a way that was missed is counted no more.
    """
    ways, missed, found, before = {0: 1}, 0.0, [], 0
    for blocks in LOOKS:
        for _ in range(blocks - before):
            more: dict[int, int] = {}
            for above, count in ways.items():
                for step in (0, 1):
                    more[above + step] = more.get(above + step, 0) + count
            ways = more
        rank, before = ranks_of_looks()[blocks], blocks
        lost = {above: count for above, count in ways.items() if above < rank or blocks - above < rank}
        missed += sum(lost.values()) / 2**blocks
        ways = {above: count for above, count in ways.items() if above not in lost}
        found.append(missed)
    return found


def test_all_looks_together_miss_the_median_as_rarely_as_one_may() -> None:
    missed = missed_by_looks()
    assert all(0 < seen <= spent(blocks / LOOKS[-1]) for seen, blocks in zip(missed, LOOKS, strict=True))
    assert 0.045 < missed[-1] <= 0.05
    assert missed[0] == 1 / 32  # of six values none lies above the median, or all do
    assert ranks_of_looks() == {6: 1, 12: 2, 20: 4, 40: 12, 80: 29}


@pytest.mark.parametrize("power", [1, 3])
def test_looks_cover_the_median_of_even_and_heavy_tailed_values_alike(power: int) -> None:
    source, missed, times = random.Random(power), 0, 3000
    for _ in range(times):
        values = [source.gauss(0, 1) ** power for _ in range(LOOKS[-1])]
        intervals = [interval(values[:blocks], at_look=True) for blocks in LOOKS]
        missed += any(own.low > 0 or own.high < 0 for own in intervals)
    assert 0.035 <= missed / times <= 0.06  # 0.0477, and three standard deviations


def test_nobody_looks_in_between() -> None:
    with pytest.raises(ValueError, match="nobody looks after 7 values"):
        interval([0.0] * 7, at_look=True)


@pytest.mark.parametrize(
    ("low", "high", "goal", "enough"),
    [
        (2.2, 2.3, Goal(2.0), True),
        (1.99, 2.3, Goal(2.0), False),
        (1.5, 1.6, Goal(2.0, share=0.4), True),  # 0.4 * (0.8 - 0.75) / 2 is one percent
        (1.5, 1.61, Goal(2.0, share=0.4), False),
        (0.5, 0.9, Goal(2.0, share=0.09), True),
        (0.5, 0.9, Goal(2.0, share=0.11), False),
        (1.5, 1.6, Goal(2.0, (1.0, 1.7), share=1.0), True),
        (1.5, 1.6, Goal(2.0, (1.0, 1.55), share=1.0), False),
        (1.5, 1.6, Goal(2.0, (1.49, 1.7), share=1.0), False),  # the margin reaches to the first step
    ],
)
def test_a_verdict_is_clear_beside_target_and_steps_and_where_points_are_known(
    low: float, high: float, goal: Goal, enough: bool
) -> None:
    measured = Interval(math.log((low + high) / 2), math.log(low) + 1e-9, math.log(high) - 1e-9)
    assert clear(measured, 0.0, goal) is enough
    assert not enough or not clear(measured, 0.5, goal)


@pytest.mark.parametrize("values", [[0.0] * 5, [0.0] * 20 + [math.nan], [0.0] * 20 + [math.inf]])
def test_too_few_values_and_no_numbers_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"few|finite"):
        interval(values)


@pytest.mark.parametrize("times", [(0.0, 1, 1, 1), (1, -1.0, 1, 1)])
def test_times_that_are_not_positive_have_no_value(times: tuple[float, float, float, float]) -> None:
    with pytest.raises(ValueError, match=r"math domain|positive"):
        _ = Block("ABBA", times).value


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_ratio_three_floors_from_the_target_is_never_judged_wrongly(trouble: str) -> None:
    wrong = 0
    for seed in range(150):
        machine = Machine(seed, 2.0, trouble=trouble)
        case = machine.case()
        margin = math.exp(3 * case.floor.size)
        wrong += verdict_of_process([case], 2.0 * margin) is PASS
        wrong += verdict_of_process([case], 2.0 / margin) is FAIL
    assert wrong <= 3  # 1 % of 300


@pytest.mark.parametrize("trouble", TROUBLES)
def test_equal_kernels_never_pass_for_five_percent_faster(trouble: str) -> None:
    assert not [
        seed
        for seed in range(100)
        if verdict_of_process([Machine(seed, 1, trouble=trouble).case()], 1.05) is PASS
    ]


@pytest.mark.parametrize("trouble", ["", "drift", "heat", "modes"])
def test_a_planted_slowdown_of_three_percent_is_always_seen(trouble: str) -> None:
    for seed in range(30):
        assert verdict_of_process([Machine(seed, 0.97, trouble=trouble).case()], 1.0) is FAIL


@pytest.mark.parametrize("trouble", TROUBLES)
def test_swapping_the_arms_mirrors_the_verdict(trouble: str) -> None:
    mirror = {PASS: FAIL, FAIL: PASS, AMBIGUOUS: AMBIGUOUS}
    for seed in range(40):
        case = Machine(seed, 1.3, trouble=trouble).case()
        own, size = interval(case.values), case.floor.size
        swapped = [Block(b.order.translate({65: 66, 66: 65}), b.seconds).value for b in case.blocks]
        for target in (1.2, 1.29, 1.31, 1.4):
            assert decide(interval(swapped), size, 1 / target) is mirror[decide(own, size, target)]


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.12, 0.3, PASS), (0.105, 0.3, AMBIGUOUS), (-0.3, -0.12, FAIL), (-0.3, -0.105, AMBIGUOUS)],
)
def test_floor_and_margin_widen_what_straddles(low: float, high: float, verdict: Verdict) -> None:
    assert decide(Interval((low + high) / 2, low, high), 0.1, 1.0) is verdict


def test_an_unsound_floor_is_told() -> None:
    assert not floor([0.01] * 10 + [0.02] * 10).sound
    assert floor([-0.01, 0.01] * 10).sound


def test_several_cases_give_the_geometric_mean() -> None:
    cases = [Machine(1, 2.0, noise=1e-6).case(), Machine(2, 8.0, noise=1e-6).case()]
    measured, _ = combined(cases)
    assert math.exp(measured.estimate) == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize(
    ("verdicts", "conclusion"),
    [
        ([PASS], None),
        ([PASS, PASS], PASS),
        ([FAIL, FAIL], FAIL),
        ([PASS, FAIL], None),
        ([PASS, AMBIGUOUS, PASS], PASS),
        ([AMBIGUOUS, AMBIGUOUS], None),
        ([UNTRUSTED, PASS], None),
        ([UNTRUSTED, PASS, UNTRUSTED], UNTRUSTED),
        ([AMBIGUOUS] * PROCESSES, AMBIGUOUS),
        ([PASS, FAIL, AMBIGUOUS, INFRA], AMBIGUOUS),
        ([UNTRUSTED, PASS, PASS], PASS),
        ([UNTRUSTED, FAIL, PASS, AMBIGUOUS], UNTRUSTED),
        ([UNTRUSTED, INFRA, INFRA, INFRA], UNTRUSTED),
        ([FAIL, INFRA, INFRA, INFRA], INFRA),
        ([INFRA] * PROCESSES, INFRA),
    ],
)
def test_clear_verdicts_need_two_processes(verdicts: list[Verdict], conclusion: Verdict | None) -> None:
    assert conclude(verdicts) is conclusion


@pytest.mark.parametrize("until_clear", [True, False])
@pytest.mark.parametrize("speedup", [1.99, 2.0, 2.01])
def test_gradings_of_one_kernel_never_say_both_fast_and_slow(speedup: float, until_clear: bool) -> None:
    source = random.Random(speedup)
    told = {graded(source, speedup, 2.0, until_clear=until_clear)[0] for _ in range(30)}
    assert not {PASS, FAIL} <= told
    assert AMBIGUOUS in told


def test_a_kernel_three_percent_slower_is_seen_in_two_short_processes() -> None:
    source = random.Random(3)
    for _ in range(30):
        verdict, processes = graded(source, 0.97, 1.0, until_clear=True, apart=0.001)
        assert verdict is FAIL
        assert len(processes) == 2
        assert all(len(process.blocks) <= LOOKS[1] for process in processes)


def test_of_a_kernel_as_fast_as_the_baseline_nothing_else_is_told() -> None:
    source = random.Random(4)
    told = {graded(source, 1.0, 1.0, until_clear=True, apart=0.001)[0] for _ in range(40)}
    assert told == {AMBIGUOUS}


def test_an_end_that_depends_on_the_values_leaves_the_interval_of_all_processes_as_wide_as_it_says() -> None:
    source, covered, times = random.Random(5), 0, 400
    for _ in range(times):
        # just as far from the target that some processes end after six blocks, and others later
        _, processes = graded(source, 1.0, 0.985, until_clear=True, apart=0.0)
        whole = interval(pooled(processes).values)
        covered += whole.low <= 0 <= whole.high
    assert covered / times >= 0.92  # 0.95 less three standard deviations


def test_a_verdict_can_be_recomputed_from_the_record() -> None:
    case = Machine(3, 1.5).case()
    data = json.loads(json.dumps(asdict(case)))
    for name in ("blocks", "same"):
        data[name] = tuple(Block(block["order"], tuple(block["seconds"])) for block in data[name])
    again = CaseTimes(**data)
    assert combined([again]) == combined([case])


def test_sweeps_that_ended_early_are_kept_and_records_of_before_have_none() -> None:
    case = replace(Machine(3, 1.5).case(), stopped=((1, 2e-6), (7, 9e-6)), first=(1e-6, 1e-6), early=3)
    samples = to_samples([case])
    assert from_samples(case.case, case.method, samples) == [case]
    later = ("stopped calls", "stopped", "first of stream", "early")
    before = {name: part for name, part in samples.items() if not name.endswith(later)}
    assert from_samples(case.case, case.method, before) == [replace(case, stopped=(), first=(), early=0)]
