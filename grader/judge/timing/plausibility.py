"""Checks whether measured times can be true: by bandwidth, by the judge's own clock and by the outputs.

These are pure functions of the times in the record. Each reason names two facts that contradict each other.
It does not accuse the student.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from grader.judge.timing.statistics import OF_PROGRAMS, interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.judge.timing.statistics import CaseTimes

PHYSICAL = 0.8  # share of the streaming kernel's time on the same bytes; no honest kernel is faster
LAUNCH_SECONDS = 0.25e-6  # per call: launching takes most of a short call, so bandwidth does not bound it
CLOCK = 0.8  # smallest ratio of the two clocks' times; the judge's also contains launches and waits
CLOCK_SECONDS = 50e-6  # per sweep: for launches and waits, or for calls that the host makes without a graph
FIRST_SECONDS = 15e-6  # extra time of a graph's first call, whose code is not in any cache yet
NOVELTY = 1.25  # how many times longer a sweep may take on contents that were never seen
AROUND_SECONDS = 0.05  # by which the rest of a process may exceed the reference's outside of a timed region,
AROUND_SHARE = 0.1  # and so much of the reference's: what no region shows can be hidden there


def reasons(case: CaseTimes) -> tuple[str, ...]:
    """Why the times of ``case`` cannot be believed; empty if they can."""
    if not _are_times(case):
        return (f"{case.case}: a time is not a positive number",)
    contradictions = _of_program(case) if case.method in OF_PROGRAMS else _of_launcher(case)
    return tuple(f"{case.case}: {reason}" for reason in contradictions)


def _of_program(case: CaseTimes) -> list[str]:
    """Why the region that a program times cannot be all that it does for its result."""
    if not case.around:
        return []
    rest = {arm: median(time for block in case.around for time in block.times(arm)) for arm in "AB"}
    longer = interval(
        [(sum(block.times("B")) - sum(block.times("A"))) / 2 for block in case.around],
        at_look=bool(case.looks),
    )
    if longer.low <= AROUND_SECONDS + AROUND_SHARE * rest["A"]:
        return []
    told = f"the program takes {_ms(rest['B'])} outside of the region that it times, and the reference"
    return [f"{told} {_ms(rest['A'])}"]


def _of_launcher(case: CaseTimes) -> list[str]:
    contradictions = []
    reported, ceiling = median(case.times("B")), median(case.stream)
    if case.wrong:
        contradictions.append(f"{case.wrong} of {case.verified} outputs of timed calls are wrong")
    if case.method != "host" and reported < PHYSICAL * ceiling - case.slots * LAUNCH_SECONDS:
        contradictions.append(
            f"{_us(reported)} for what the device needs {_us(ceiling)} to read and write at full bandwidth"
        )
    clock = case.clock("submission")
    if reported < CLOCK * clock.low - CLOCK_SECONDS:
        contradictions.append(f"{_us(reported)} reported, but {_us(clock.estimate)} by the judge's clock")
    made = case.baseline_calls or case.slots
    baseline, clock = median(case.times("A")) * made / case.slots, case.clock("baseline")
    if CLOCK * baseline > clock.high + CLOCK_SECONDS:
        contradictions.append(
            f"{_us(baseline)} reported for the baseline, but {_us(clock.estimate)} by the judge's clock"
        )
    # what ending early costs any kernel; older records do not say
    overhead = max(0.0, median(case.first) - ceiling / case.slots) if case.first else 0.0
    calls = case.novel_calls or case.slots
    known, leeway = reported * calls / case.slots, leeway_of_calls(case.method, calls, case.slots)
    if remembers(case.novel, known, leeway + (overhead if calls < case.slots else 0.0)):
        contradictions.append(f"{_us(min(case.novel))} on contents never seen before, {_us(known)} on others")
    if case.early:
        contradictions.append(f"{case.early} outputs were written before their call")
    alone, call = [seconds for calls, seconds in case.stopped if calls == 1], reported / case.slots
    most = NOVELTY * call + overhead + leeway_of_calls(case.method, 1, case.slots)
    if alone and min(alone) > most:  # older records have none
        contradictions.append(f"{_us(min(alone))} for a first call, but {_us(call)} for one of {case.slots}")
    return contradictions


def neighbours_explain(case: CaseTimes) -> bool:
    """Whether reasons to doubt ``case`` may come from other processes on the GPU: only times are in doubt."""
    return _are_times(case) and not case.wrong and not case.early


def _are_times(case: CaseTimes) -> bool:
    raw = [time for block in (*case.blocks, *case.same, *case.around) for time in block.seconds]
    raw += [*case.stream, *case.novel, *(seconds for *_, seconds in case.batches)]
    raw += [*case.first, *(seconds for _, seconds in case.stopped)]
    return all(math.isfinite(time) and time > 0 for time in raw)


def leeway_of_calls(method: str, calls: int, slots: int) -> float:
    """Seconds by which a sweep that ends after ``calls`` calls may exceed what is expected of it."""
    return FIRST_SECONDS if method == "graph" and calls < slots else CLOCK_SECONDS


def remembers(novel: Sequence[float], usual: float, leeway: float) -> bool:
    """Whether every sweep on new contents took longer than usual, as it does when results are memoised."""
    return min(novel) > NOVELTY * usual + leeway


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.4g} ms"


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"
