"""What an appeal against a speed verdict looks at: the verdict again, from the record's raw times alone.

Layer: the judge's pure functions; nothing runs and nothing is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.judge.timing import speed, steps
from grader.judge.timing.speed import NoSamplesError
from grader.judge.timing.statistics import from_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.records.record import PerformanceResult, Record, TimedCase


@dataclass(frozen=True)
class Appeal:
    """One problem's speed, as recorded and as its raw times say.

    Attributes:
        lines: what to tell, the problem first and then its cases.
        upheld: whether verdict, speedup and interval are what the raw times say.
    """

    lines: tuple[str, ...]
    upheld: bool


def appeals(record: Record) -> Iterator[Appeal]:
    """The speed of every problem in ``record`` that was measured."""
    for problem in record.problems:
        recorded = problem.performance
        try:
            again = _again(recorded)
            cases = [_case(case) for case in recorded.cases]
        except NoSamplesError:
            continue
        except ValueError as error:
            yield Appeal((f"{problem.id}: recorded {_told(recorded)}; {error}",), upheld=False)
            continue
        upheld = _decisive(again) == _decisive(recorded)
        said = "the same" if upheld else _told(again)
        line = f"{problem.id}: recorded {_told(recorded)}; from the raw times: {said}"
        yield Appeal((line, *cases), upheld)


def _again(recorded: PerformanceResult) -> PerformanceResult:
    trained = any(case.method == steps.METHOD for case in recorded.cases)
    return steps.recomputed(recorded) if trained else speed.recomputed(recorded)


def _decisive(result: PerformanceResult) -> tuple[object, ...]:
    cases = [(case.name, case.verdict, case.speedup, case.interval) for case in result.cases]
    return result.verdict, result.speedup, result.interval, cases


def _told(result: PerformanceResult) -> str:
    if result.speedup is None or result.interval is None:
        return str(result.verdict)
    low, high = result.interval
    return f"{result.verdict} at {result.speedup:.3f}x ({low:.3f} to {high:.3f}) of {result.target:g}x"


def _case(case: TimedCase) -> str:
    speedup = "no speedup" if case.speedup is None else f"{case.speedup:.3f}x"
    floor = "" if case.floor is None else f", differences under {case.floor:.2%} cannot be told apart"
    if case.method == steps.METHOD:
        turns = steps.from_samples(case.name, case.samples)
        blocks, count = sum(len(one.blocks) for one in turns), len(turns)
        held = f"losses differ by {max(one.difference for one in turns):.2%} at most"
    else:
        processes = from_samples(case.name, case.method, case.samples)
        blocks, count = sum(len(one.blocks) for one in processes), len(processes)
        verified, wrong = sum(one.verified for one in processes), sum(one.wrong for one in processes)
        held = f"{verified} outputs of timed calls compared, {wrong} wrong"
    return f"  {case.name}: {speedup} by {case.method}, {blocks} blocks in {count} processes{floor}; {held}"
