"""Computes a speed verdict from the times of training steps, and recomputes it from a record's raw times.

These are pure functions of the times in the record, like those of ``speed`` for kernels.

Layer: standard library, the record and the verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

from grader.judge.timing.speed import NoSamplesError
from grader.judge.timing.statistics import ORDERS, Block, conclude, decide, floor, interval
from grader.records.record import PerformanceResult, TimedCase
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.judge.timing.statistics import Interval

EAGER, CAPTURED = "steps", "captured steps"
METHODS = (EAGER, CAPTURED)
"""How a step was made: operation by operation, as Python asks for them, or as one CUDA graph."""
AGREEMENT = (
    0.02  # share of the loss: rounding errors grow over many steps, but a path that skips work learns nothing
)


@dataclass(frozen=True)
class Turns:
    """What one pair of runners measured: blocks in seconds per step, and by how much the losses differ.

    ``looks`` are the numbers of blocks after which it was looked whether the verdict is clear, the last of
    them after all; none where the number of blocks was fixed.
    """

    blocks: tuple[Block, ...]
    difference: float
    looks: tuple[int, ...] = ()

    @property
    def speedup(self) -> Interval:
        """The log of the speedup."""
        return interval(self.values(), at_look=bool(self.looks))

    @property
    def floor(self) -> float:
        """The size of the noise floor."""
        return floor(self.same(), at_look=bool(self.looks)).size

    def values(self) -> list[float]:
        """Log speedups."""
        return [block.value for block in self.blocks]

    def same(self) -> list[float]:
        """Log ratios of the baseline against itself, from its two turns in each block."""
        ratios = []
        for block in self.blocks:
            first, second = (s for arm, s in zip(block.order, block.seconds, strict=True) if arm == "A")
            ratios.append(math.log(first / second))
        return ratios

    def seconds(self, arm: str) -> list[float]:
        """Seconds per step of one arm."""
        return [
            seconds
            for block in self.blocks
            for name, seconds in zip(block.order, block.seconds, strict=True)
            if name == arm
        ]


def verdict(turns: Turns, target: float) -> Verdict:
    """The verdict of one pair of runners."""
    if turns.difference > AGREEMENT:
        return Verdict.FAIL
    return decide(turns.speedup, turns.floor, target)


def assessed(name: str, method: str, pairs: Sequence[Turns], target: float) -> PerformanceResult:
    """The record of the case ``name``, with speedup and interval from the blocks of all pairs.

    Args:
        name: name of the case.
        method: one of ``METHODS``.
        pairs: what each pair of runners measured; enough pairs for a verdict, or all that were tried.
        target: the speedup to reach.
    """
    concluded = conclude([verdict(turns, target) for turns in pairs]) or Verdict.AMBIGUOUS
    overall = interval([value for turns in pairs for value in turns.values()])
    speedup, between = math.exp(overall.estimate), (math.exp(overall.low), math.exp(overall.high))
    timed = TimedCase(
        name=name,
        verdict=concluded,
        speedup=speedup,
        interval=between,
        baseline_us=median(s for turns in pairs for s in turns.seconds("A")) * 1e6,
        yours_us=median(s for turns in pairs for s in turns.seconds("B")) * 1e6,
        floor=floor([value for turns in pairs for value in turns.same()]).size,
        method=method,
        samples=to_samples(pairs),
    )
    worst = max(turns.difference for turns in pairs)
    if worst > AGREEMENT:
        message = (
            f"the fused model does not learn as the unfused one does: its losses differ by {worst:.0%}, "
            "although both start from the same weights and see the same batches"
        )
        return PerformanceResult(verdict=concluded, target=target, message=message, cases=[timed])
    return PerformanceResult(
        verdict=concluded, target=target, speedup=speedup, interval=between, cases=[timed]
    )


def to_samples(pairs: Sequence[Turns]) -> dict[str, list[float]]:
    """Seconds per step of every turn, and the order of each block as its index in ``ORDERS``."""
    samples: dict[str, list[float]] = {}
    for number, turns in enumerate(pairs, 1):
        blocks = turns.blocks
        samples[f"process {number}: order"] = [ORDERS.index(block.order) for block in blocks]
        samples[f"process {number}: blocks"] = [seconds for block in blocks for seconds in block.seconds]
        samples[f"process {number}: losses differ by"] = [turns.difference]
        samples[f"process {number}: looks"] = list(turns.looks)
    return samples


def from_samples(case: str, samples: Mapping[str, Sequence[float]]) -> list[Turns]:
    """The pairs from which ``to_samples`` made ``samples``; the inverse of it.

    Raises:
        ValueError: a part is missing, or the lengths of the parts do not match.
    """
    pairs = []
    try:
        for number in range(1, len({name.partition(":")[0] for name in samples}) + 1):
            start = f"process {number}: "
            times = iter(samples[f"{start}blocks"])
            fours = zip(samples[f"{start}order"], zip(times, times, times, times, strict=True), strict=True)
            blocks = tuple(Block(ORDERS[int(order)], four) for order, four in fours)
            looks = tuple(map(int, samples.get(f"{start}looks", ())))  # older records have none
            pairs.append(Turns(blocks, samples[f"{start}losses differ by"][0], looks))
    except (KeyError, IndexError) as error:
        raise ValueError(f"{case}: the raw times are incomplete: {error}") from error
    return pairs


def recomputed(record: PerformanceResult) -> PerformanceResult:
    """Verdict, speedup and interval, computed only from the raw times and the target in ``record``.

    Raises:
        NoSamplesError: the record holds no raw times.
        ValueError: no measurement leaves such times.
    """
    cases = [from_samples(case.name, case.samples) for case in record.cases]
    if not cases or not all(cases):
        raise NoSamplesError("the record holds no raw times")
    (case, *_), (pairs, *_) = record.cases, cases
    return assessed(case.name, case.method, pairs, record.target)
