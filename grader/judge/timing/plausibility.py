"""Whether measured times can be true: physics, the judge's own clock, and the outputs of the timed calls.

Pure functions of what the record keeps. A reason is no accusation: it says which facts contradict each other.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.judge.timing.statistics import CaseTimes

PHYSICAL = 0.8  # of the streaming kernel's time on the same bytes; nothing honest is faster
LAUNCH_SECONDS = 0.25e-6  # per call: a short one is mostly a launch, and bandwidth is not what bounds it
CLOCK = 0.8  # of one clock's time by the other; the judge's contains launches and waits, too
CLOCK_SECONDS = 50e-6  # per sweep: what these may take, or the host, which makes calls that are no graph
FIRST_SECONDS = 15e-6  # of a graph's first call, whose code is in no cache
NOVELTY = 1.25  # times longer on contents that were never seen


def reasons(case: CaseTimes) -> tuple[str, ...]:
    """Why the times of ``case`` cannot be believed; empty if they can."""
    raw = [time for block in (*case.blocks, *case.same) for time in block.seconds]
    raw += [*case.stream, *case.novel, *(seconds for *_, seconds in case.batches)]
    raw += [*case.first, *(seconds for _, seconds in case.stopped)]
    if not all(math.isfinite(time) and time > 0 for time in raw):
        return (f"{case.case}: a time is not a positive number",)
    found = []
    reported, ceiling = median(case.times("B")), median(case.stream)
    if case.wrong:
        found.append(f"{case.wrong} of {case.verified} outputs of timed calls are wrong")
    if case.method != "host" and reported < PHYSICAL * ceiling - case.slots * LAUNCH_SECONDS:
        found.append(
            f"{_us(reported)} for what the device needs {_us(ceiling)} to read and write at full bandwidth"
        )
    clock = case.clock("submission")
    if reported < CLOCK * clock.low - CLOCK_SECONDS:
        found.append(f"{_us(reported)} reported, but {_us(clock.estimate)} by the judge's clock")
    baseline, clock = median(case.times("A")), case.clock("baseline")
    if CLOCK * baseline > clock.high + CLOCK_SECONDS:
        found.append(
            f"{_us(baseline)} reported for the baseline, but {_us(clock.estimate)} by the judge's clock"
        )
    if remembers(case.novel, reported):
        found.append(f"{_us(min(case.novel))} on contents never seen before, {_us(reported)} on others")
    if case.early:
        found.append(f"{case.early} outputs were written before their call")
    alone, call = [seconds for calls, seconds in case.stopped if calls == 1], reported / case.slots
    if alone:  # records of before have none
        apart = max(0.0, median(case.first) - ceiling / case.slots)  # what ending early costs any kernel
        leeway = FIRST_SECONDS if case.method == "graph" else CLOCK_SECONDS
        if min(alone) > NOVELTY * call + apart + leeway:
            found.append(f"{_us(min(alone))} for a first call, but {_us(call)} for one of {case.slots}")
    return tuple(f"{case.case}: {reason}" for reason in found)


def remembers(novel: Sequence[float], reported: float) -> bool:
    """Whether sweeps on new contents take longer than others: all of them, if results are remembered."""
    return min(novel) > NOVELTY * reported + CLOCK_SECONDS


def _us(seconds: float) -> str:
    return f"{seconds * 1e6:.4g} us"
