"""A speed verdict comes out of the record as it went in."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from simulated_machine import Machine

from grader.judge.timing.speed import HOST_TIMES, SHARED, NoSamplesError, assessed, recomputed
from grader.records.record import GpuCondition, PerformanceResult
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.judge.timing.statistics import CaseTimes


def times(seed: int, name: str, speedup: float, changes: Mapping[str, object]) -> CaseTimes:
    seconds = {"submission": 1e-3 / speedup, "baseline": 1e-3, "nothing": 0}
    batches = tuple(
        (one, length, 1e-4 + length * (5e-4 + seconds[one]))
        for length in range(6, 15)
        for arm in ("submission", "baseline")
        for one in (arm, "nothing")
    )
    known = {"case": name, "stream": (0.9e-3 / speedup,) * 20, "novel": (1e-3 / speedup,), "batches": batches}
    return replace(Machine(seed, speedup).case(), **{**known, **changes})


def processes(speedup: float, count: int = 2, **changes: object) -> list[list[CaseTimes]]:
    return [
        [times(10 * number + place, f"case {place}", speedup, changes) for place in range(3)]
        for number in range(count)
    ]


def through_json(result: PerformanceResult) -> PerformanceResult:
    return PerformanceResult.model_validate(json.loads(result.model_dump_json()))


@pytest.mark.parametrize(("target", "verdict"), [(1.5, Verdict.PASS), (2.5, Verdict.FAIL)])
def test_verdict_speedup_and_interval_are_recomputed_to_the_bit(target: float, verdict: Verdict) -> None:
    first = assessed(processes(2.0), target, [8, 16, 24])
    assert first.verdict is verdict
    assert first.interval is not None
    assert first.interval[0] < 2.0 < first.interval[1] * 1.001
    assert recomputed(through_json(first)) == first


def test_an_appeal_trusts_no_number_but_the_raw_times() -> None:
    first = assessed(processes(2.0), 1.5, [8, 16, 24])
    forged = through_json(first).model_copy(update={"verdict": Verdict.FAIL, "speedup": 0.1})
    assert recomputed(forged) == first


def test_untrusted_times_stay_untrusted_for_the_same_reasons() -> None:
    first = assessed(processes(2.0, wrong=3), 1.5, [8, 16, 24])
    assert first.verdict is Verdict.UNTRUSTED
    assert "3 of 8 outputs" in first.message
    assert recomputed(through_json(first)) == first


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"novel": (1.0,)}, Verdict.INFRA_ERROR),
        ({"novel": (1.0,), "early": 1}, Verdict.UNTRUSTED),
        ({"wrong": 3}, Verdict.UNTRUSTED),
        ({"stream": (math.nan,)}, Verdict.UNTRUSTED),
    ],
)
def test_neighbours_on_the_gpu_excuse_times_and_no_outputs(
    changes: dict[str, object], verdict: Verdict
) -> None:
    measured = processes(2.0, **changes)
    assert assessed(measured, 1.5, [8, 16, 24]).verdict is Verdict.UNTRUSTED
    first = assessed(measured, 1.5, [8, 16, 24], shared=True)
    assert first.verdict is verdict
    assert (SHARED in first.message) is (verdict is Verdict.INFRA_ERROR)
    before = GpuCondition(moment="before timing", others=1)
    assert recomputed(through_json(first.model_copy(update={"condition": [before]}))).verdict is verdict


def test_a_time_that_is_no_number_leaves_a_record_that_can_be_written_and_read() -> None:
    first = assessed(processes(2.0, stream=(math.nan,)), 1.5, [8, 16, 24])
    again = recomputed(through_json(first))
    assert again.verdict is first.verdict is Verdict.UNTRUSTED
    assert again.message == first.message


def test_one_case_that_is_not_believed_in_one_process_leaves_the_others_numbers() -> None:
    bad = processes(2.0, count=3)
    bad[1][2] = replace(bad[1][2], wrong=1)
    first = assessed(bad, 1.5, [8, 16, 24])
    assert first.verdict is Verdict.PASS
    assert recomputed(through_json(first)) == first


def test_records_without_raw_times_are_refused() -> None:
    with pytest.raises(NoSamplesError, match="no raw times"):
        recomputed(PerformanceResult(verdict=Verdict.FAIL, target=1.0))
    with pytest.raises(NoSamplesError, match="too few"):
        assessed(processes(2.0, count=1), 1.5, [8, 16, 24])
    damaged = through_json(assessed(processes(2.0), 1.5, [8, 16, 24]))
    del damaged.cases[0].samples["process 2: same"]
    with pytest.raises(ValueError, match="incomplete"):
        recomputed(damaged)


def test_times_with_host_pointers_are_said_to_be_mostly_copies() -> None:
    result = assessed(processes(2.0, method="host"), 1.5, [8, 16, 24])
    assert result.message == HOST_TIMES
    assert recomputed(result) == result
    assert not assessed(processes(2.0), 1.5, [8, 16, 24]).message
