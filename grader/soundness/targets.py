"""Whether a target of speed can be reached with room, and what it might be: pure functions of what was timed.

Layer: imports the record.
"""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.assignments.rules import ProblemPoints
    from grader.records.record import PerformanceResult

ROOM = 1.1  # the reference is to be so much faster than the target: a GPU of another day is slower
LIMIT = 1.0  # a share of the limit is no more than that, but for noise
SHARE = 0.8  # of the reference's speedup, as a target: near enough to ask for the same ideas
NAIVE = "naive"
"""The name of a variant that a beginner would write; without one, the slowest stands for it."""


def target_row(
    entry: ProblemPoints, reference: PerformanceResult, variants: Mapping[str, PerformanceResult]
) -> tuple[bool | None, str]:
    """Whether the target of a problem is sound, and the figures.

    Where a beginner's kernel reaches the target, too, that is said, and the target stays sound: in some
    problems such a kernel is as good as any, and some targets are given by a course.

    Args:
        entry: the problem's points and target.
        reference: the speed of the reference.
        variants: that of each variant, by name.
    """
    if not entry.performance:
        return True, "no speed is asked for"
    if reference.speedup is None or reference.interval is None:
        return None, reference.message
    low, room, suggested = reference.interval[0], _room(entry), _two_digits(SHARE * reference.interval[0])
    figures = [f"reference {reference.speedup:.2f}x{_times(reference)}"]
    speeds = {name: result.speedup for name, result in variants.items() if result.speedup is not None}
    name = NAIVE if NAIVE in speeds else min(speeds, key=speeds.__getitem__, default="")
    if name:
        figures.append(f"{name} {speeds[name]:.2f}x")
    if low < room * entry.target:
        verdict = (
            f"target {entry.target:g}x is out of reach or has no room: the reference needs {room:.3g}x of it"
        )
    else:
        verdict = f"target {entry.target:g}x is reached with {low / entry.target - 1:.0%} to spare"
        if name and speeds[name] >= entry.target:
            slower = speeds[name] < suggested
            comparison = "the suggested one tells from" if slower else "is nearly as fast as"
            verdict += f", also by {name}, which {comparison} the reference"
    return low >= room * entry.target, "; ".join((verdict, *figures, f"suggested: {suggested:g}x"))


def _room(entry: ProblemPoints) -> float:
    """How much faster than its target the reference is to be.

    A tenth beyond a share of more than 91 % is beyond the limit, where nothing can be. There it is half of
    the way from the target to the limit.
    """
    if entry.measure != "speedup" and entry.target < LIMIT < ROOM * entry.target:
        return (entry.target + LIMIT) / 2 / entry.target
    return ROOM


def _times(performance: PerformanceResult) -> str:
    """Microseconds of baseline and kernel in each case that was timed."""
    parts = [
        f"{case.name}: {case.baseline_us:.1f} and {case.yours_us:.1f} us"
        for case in performance.cases
        if case.baseline_us is not None and case.yours_us is not None
    ]
    return f" (baseline and reference, {', '.join(parts)})" if parts else ""


def _two_digits(number: float) -> float:
    return round(number, 1 - floor(log10(number)))
