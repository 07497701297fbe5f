"""Makes the record of a speed verdict from the times of several processes, and recomputes it from a record.

These are pure functions: from a record's raw times ``recomputed`` gives the result that ``assessed`` gave.
"""

from __future__ import annotations

import math
from statistics import fmean, median
from typing import TYPE_CHECKING

from grader.judge.timing import plausibility as trust
from grader.judge.timing.statistics import (
    PROCESS,
    combined,
    conclude,
    decide,
    from_samples,
    interval,
    pooled,
    to_samples,
    verdict_of_process,
)
from grader.records.record import PerformanceResult, TimedCase
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.judge.timing.statistics import CaseTimes

    Process = Sequence[CaseTimes]
    """What one process measured, case by case."""


HOST_TIMES = (
    "these are times of whole calls with host pointers: most of it is allocating and copying, little is "
    "the kernel; every operation of the baseline makes such a round trip, as in the original course"
)
"""The remark on speedups that the method ``host`` measured."""
PROCESS_TIMES = (
    "these are times of whole processes: starting one, and CUDA in it, is a part of them that no program can "
    "avoid"
)
"""The remark on speedups of programs that do not time a region."""
_REMARKS = {"host": HOST_TIMES, PROCESS: PROCESS_TIMES}
SHARED = (
    "other processes had the GPU open before timing began, which may be why these times contradict each "
    "other; grade again when they have ended"
)
"""What is said of times that nobody can believe, and that may have been right but for the neighbours."""


class NoSamplesError(Exception):
    """A record without raw times: nothing was measured, or they were left out."""


def doubts(process: Process) -> tuple[str, ...]:
    """Why the times of ``process`` cannot be trusted; empty if they can."""
    return tuple(reason for case in process for reason in trust.reasons(case))


def verdict(processes: Sequence[Process], target: float) -> Verdict | None:
    """The verdict of all processes so far; None if another measurement is needed."""
    return conclude(
        [
            Verdict.UNTRUSTED if doubts(process) else verdict_of_process(process, target)
            for process in processes
        ]
    )


def assessed(
    processes: Sequence[Process], target: float, sizes: Sequence[int | None], *, shared: bool = False
) -> PerformanceResult:
    """The record, with speedup and interval from the blocks of all trusted processes.

    Args:
        processes: the times of enough processes for a verdict.
        target: the speedup to reach.
        sizes: minimal bytes of each case.
        shared: whether others used the GPU, so that times which contradict each other may be their fault.

    Raises:
        NoSamplesError: there are too few processes for a verdict.
    """
    concluded = verdict(processes, target)
    if concluded is None:
        raise NoSamplesError(f"{len(processes)} process(es) are too few for a verdict")
    trusted = [process for process in processes if not doubts(process)]
    cases = [
        _case(
            [process[index] for process in processes],
            [process[index] for process in trusted],
            target,
            size,
        )
        for index, size in enumerate(sizes)
    ]
    reasons = dict.fromkeys(reason for process in processes for reason in doubts(process))
    if concluded is Verdict.UNTRUSTED or not trusted:
        message = "; ".join(reasons)
        if shared and all(trust.neighbours_explain(case) for process in processes for case in process):
            concluded, message = Verdict.INFRA_ERROR, f"{message}; {SHARED}"
        return PerformanceResult(verdict=concluded, target=target, message=message, cases=cases)
    together = [pooled([process[index] for process in trusted]) for index in range(len(sizes))]
    overall, _ = combined(together)
    fractions = [case.bandwidth_fraction for case in together if case.bandwidth_fraction is not None]
    return PerformanceResult(
        verdict=concluded,
        target=target,
        speedup=math.exp(overall.estimate),
        interval=(math.exp(overall.low), math.exp(overall.high)),
        bandwidth_fraction=math.exp(fmean(map(math.log, fractions))) if fractions else None,
        message=_REMARKS.get(together[0].method, ""),
        cases=cases,
        info=[f"a process was not trusted and does not count: {reason}" for reason in reasons],
    )


def recomputed(record: PerformanceResult) -> PerformanceResult:
    """Verdict, speedups and intervals, computed only from the raw times and the target in ``record``.

    Raises:
        NoSamplesError: the record holds no raw times.
        ValueError: no measurement leaves such times: they are too few, or are not numbers.
    """
    cases = [from_samples(case.name, case.method, case.samples) for case in record.cases]
    if not cases or not all(cases):
        raise NoSamplesError("the record holds no raw times")
    processes = list(zip(*cases, strict=True))
    shared = bool(record.condition and record.condition[0].others)
    return assessed(processes, record.target, [case.minimal_bytes for case in record.cases], shared=shared)


def _case(times: Process, trusted: Process, target: float, minimal_bytes: int | None) -> TimedCase:
    samples = to_samples(times)
    if not trusted:
        name, method = times[0].case, times[0].method
        return TimedCase(
            name=name,
            verdict=Verdict.UNTRUSTED,
            method=method,
            minimal_bytes=minimal_bytes,
            samples=samples,
        )
    case = pooled(trusted)
    own, size = interval(case.values), case.floor.size
    return TimedCase(
        name=case.case,
        verdict=decide(own, size, target),
        speedup=math.exp(own.estimate),
        interval=(math.exp(own.low), math.exp(own.high)),
        baseline_us=median(case.times("A")) / case.slots * 1e6,
        yours_us=median(case.times("B")) / case.slots * 1e6,
        bandwidth_fraction=case.bandwidth_fraction,
        minimal_bytes=minimal_bytes,
        floor=size,
        method=case.method,
        samples=samples,
    )
