"""Checks a recorded speed verdict for an appeal: computes it again from the raw times in the record.

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
    """The recorded speed of one problem, compared with what its raw times give.

    Attributes:
        lines: the text to show: one line for the problem, then one for each case.
        upheld: whether the raw times give the recorded verdict, speedup and interval.
    """

    lines: tuple[str, ...]
    upheld: bool


def appeals(record: Record) -> Iterator[Appeal]:
    """An appeal for every problem in ``record`` that was measured."""
    for problem in record.problems:
        recorded = problem.performance
        try:
            again = _again(recorded)
            cases = [_case(case) for case in recorded.cases]
        except NoSamplesError:
            continue
        except ValueError as error:
            yield Appeal((f"{problem.id}: recorded {_outcome(recorded)}; {error}",), upheld=False)
            continue
        upheld = _decisive(again) == _decisive(recorded)
        outcome = "the same" if upheld else _outcome(again)
        line = f"{problem.id}: recorded {_outcome(recorded)}; from the raw times: {outcome}"
        yield Appeal((line, *cases), upheld)


def _again(recorded: PerformanceResult) -> PerformanceResult:
    trained = any(case.method in steps.METHODS for case in recorded.cases)
    return steps.recomputed(recorded) if trained else speed.recomputed(recorded)


def _decisive(result: PerformanceResult) -> tuple[object, ...]:
    cases = [(case.name, case.verdict, case.speedup, case.interval) for case in result.cases]
    return result.verdict, result.speedup, result.interval, cases


def _outcome(result: PerformanceResult) -> str:
    if result.speedup is None or result.interval is None:
        return str(result.verdict)
    low, high = result.interval
    return f"{result.verdict} at {result.speedup:.3f}x ({low:.3f} to {high:.3f}) of {result.target:g}x"


def _case(case: TimedCase) -> str:
    speedup = "no speedup" if case.speedup is None else f"{case.speedup:.3f}x"
    floor = "" if case.floor is None else f", differences under {case.floor:.2%} cannot be told apart"
    if case.method in steps.METHODS:
        pairs = steps.from_samples(case.name, case.samples)
        blocks, count = sum(len(turns.blocks) for turns in pairs), len(pairs)
        check = f"losses differ by {max(turns.difference for turns in pairs):.2%} at most"
    else:
        processes = from_samples(case.name, case.method, case.samples)
        blocks, count = sum(len(times.blocks) for times in processes), len(processes)
        verified, wrong = sum(times.verified for times in processes), sum(times.wrong for times in processes)
        check = f"{verified} outputs of timed calls compared, {wrong} wrong"
    return f"  {case.name}: {speedup} by {case.method}, {blocks} blocks in {count} processes{floor}; {check}"
