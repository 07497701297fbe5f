"""Computes a speed verdict from raw times, by pure functions of the record that anyone can check.

Baseline (A) and submission (B) run in blocks A B B A or B A A B. The value of a block is the log of its
speedup. Order statistics give an interval around the median of the values. The same procedure with the
baseline against itself gives the noise floor: the smallest difference that this machine can measure.

Layer: standard library and the verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import TYPE_CHECKING

from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONFIDENCE = 0.95
ORDERS = ("ABBA", "BAAB")
NOTHING = "nothing"  # the arm whose sweeps only restore the arrays
BATCH_ARMS = ("submission", NOTHING, "baseline")
FEWEST_BLOCKS = 6  # with fewer values there is no interval of this confidence
PROCESSES = 4  # at most: two that must agree, and two more if they do not
BLOCKS = (20, 20, 40, 80)  # per process
MARGIN = 0.01  # log ratio by which fresh processes may differ although the interval of each is narrow


@dataclass(frozen=True)
class Block:
    """Four sweeps in turn: ``order`` names the arms, ``seconds`` their times."""

    order: str
    seconds: tuple[float, float, float, float]

    def times(self, arm: str) -> list[float]:
        """The times of arm ``A`` or ``B``."""
        return [seconds for name, seconds in zip(self.order, self.seconds, strict=True) if name == arm]

    @property
    def value(self) -> float:
        """The log of the speedup of B over A: ``(ln a1 + ln a2 - ln b1 - ln b2) / 2``."""
        signs = (1 if arm == "A" else -1 for arm in self.order)
        return sum(sign * math.log(time) for sign, time in zip(signs, self.seconds, strict=True)) / 2


@dataclass(frozen=True)
class Interval:
    """A median and its confidence interval; these are log ratios unless stated otherwise."""

    estimate: float
    low: float
    high: float

    def widened(self, floor: float) -> Interval:
        """The interval, made wider by ``floor`` on both sides."""
        return Interval(self.estimate, self.low - floor, self.high + floor)


def rank(count: int) -> int:
    """The k for which the k-th smallest and k-th largest of ``count`` values enclose the median.

    The largest k with ``1 - 2 P(Binomial(count, 1/2) < k) >= CONFIDENCE``.

    Raises:
        ValueError: there are fewer than ``FEWEST_BLOCKS`` values.
    """
    if count < FEWEST_BLOCKS:
        raise ValueError(f"{count} values are too few for an interval")
    below, k = 0.0, 0
    while 1 - 2 * (below + math.comb(count, k) / 2**count) >= CONFIDENCE:
        below += math.comb(count, k) / 2**count
        k += 1
    return k


def interval(values: Sequence[float]) -> Interval:
    """The median of ``values`` and its interval by order statistics: exact, whatever their distribution.

    Raises:
        ValueError: there are too few values, or one is not finite.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is not finite")
    k, ordered = rank(len(values)), sorted(values)
    return Interval(median(ordered), ordered[k - 1], ordered[-k])


@dataclass(frozen=True)
class Floor:
    """How much the baseline differs from itself, as a log ratio; unsound if 0 lies outside the interval."""

    size: float
    sound: bool


def floor(values: Sequence[float]) -> Floor:
    """The floor of A/A blocks: the larger of the interval's half-width and the median's size."""
    own = interval(values)
    return Floor(max((own.high - own.low) / 2, abs(own.estimate)), own.low <= 0 <= own.high)


def decide(measured: Interval, floor_size: float, target: float) -> Verdict:
    """PASS above the target, FAIL below, AMBIGUOUS if the interval widened by floor and margin straddles it.

    Raises:
        ValueError: the target is not positive.
    """
    if not target > 0:
        raise ValueError("a target is a positive speedup")
    wide, goal = measured.widened(floor_size + MARGIN), math.log(target)
    if wide.low >= goal:
        return Verdict.PASS
    return Verdict.FAIL if wide.high < goal else Verdict.AMBIGUOUS


@dataclass(frozen=True)
class CaseTimes:
    """What one process measured on one case; all times are seconds of one sweep over ``slots`` calls.

    Attributes:
        case: name of the case.
        method: ``graph``, ``events`` or ``host``.
        slots: calls per sweep.
        blocks: baseline against submission.
        same: baseline against baseline; each of these blocks follows one of ``blocks``.
        stream: times of the streaming kernel, which reads and writes as many bytes.
        novel: times of the submission on contents that it had never seen, new ones for each sweep.
        batches: arm, number of sweeps and seconds by the judge's own clock. They come in pairs of equal
            length, one after the other: one is the submission or the baseline, the other only restores.
        verified: number of calls whose outputs the judge compared.
        wrong: number of those calls with wrong outputs.
        stopped: number of calls and seconds of the submission's sweeps that ended early.
        first: seconds of the streaming kernel's sweeps that ended after its first call.
        early: number of calls that were left out by ending early, but whose outputs were written.
    """

    case: str
    method: str
    slots: int
    blocks: tuple[Block, ...]
    same: tuple[Block, ...]
    stream: tuple[float, ...]
    novel: tuple[float, ...]
    batches: tuple[tuple[str, int, float], ...]
    verified: int
    wrong: int
    stopped: tuple[tuple[int, float], ...] = ()
    first: tuple[float, ...] = ()
    early: int = 0

    def times(self, arm: str) -> list[float]:
        """The raw times of arm ``A`` or ``B``."""
        return [seconds for block in self.blocks for seconds in block.times(arm)]

    @property
    def values(self) -> list[float]:
        """The block values."""
        return [block.value for block in self.blocks]

    @property
    def floor(self) -> Floor:
        """The noise floor of this case."""
        return floor([block.value for block in self.same])

    @property
    def bandwidth_fraction(self) -> float:
        """The streaming kernel's time over the submission's."""
        return median(self.stream) / median(self.times("B"))

    def clock(self, arm: str) -> Interval:
        """Seconds per sweep of ``arm`` by the judge's clock: the differences within its pairs.

        Both batches of a pair contain restoring and the round trip, so these cancel out but for their noise.

        Raises:
            ValueError: there are too few pairs.
        """
        differences = []
        for (first_arm, length, first), (second_arm, _, second) in zip(
            self.batches[::2], self.batches[1::2], strict=True
        ):
            seconds = {first_arm: first, second_arm: second}
            if arm in seconds:
                differences.append((seconds[arm] - seconds[NOTHING]) / length)
        return interval(differences)


def pooled(times: Sequence[CaseTimes]) -> CaseTimes:
    """The times of several processes on one case, as if one process had measured them."""
    return replace(
        times[0],
        blocks=tuple(block for process in times for block in process.blocks),
        same=tuple(block for process in times for block in process.same),
        stream=tuple(seconds for process in times for seconds in process.stream),
    )


def to_samples(processes: Sequence[CaseTimes]) -> dict[str, list[float]]:
    """The raw times of one case as the record keeps them, in seconds.

    An order is written as its index in ``ORDERS`` and an arm as its index in ``BATCH_ARMS``. A value that is
    not finite becomes 0, which no clock returns either.
    """
    return {
        f"process {number}: {name}": [value if math.isfinite(value) else 0.0 for value in values]
        for number, times in enumerate(processes, 1)
        for name, values in _parts(times).items()
    }


def _parts(times: CaseTimes) -> Mapping[str, Sequence[float]]:
    return {
        "slots": [times.slots],
        "order": [ORDERS.index(block.order) for block in times.blocks],
        "blocks": [seconds for block in times.blocks for seconds in block.seconds],
        "same order": [ORDERS.index(block.order) for block in times.same],
        "same": [seconds for block in times.same for seconds in block.seconds],
        "stream": times.stream,
        "novel": times.novel,
        "batch arm": [BATCH_ARMS.index(arm) for arm, _, _ in times.batches],
        "batch length": [length for _, length, _ in times.batches],
        "batch": [seconds for *_, seconds in times.batches],
        "verified, wrong": [times.verified, times.wrong],
        "stopped calls": [calls for calls, _ in times.stopped],
        "stopped": [seconds for _, seconds in times.stopped],
        "first of stream": times.first,
        "early": [times.early],
    }


def from_samples(case: str, method: str, samples: Mapping[str, Sequence[float]]) -> list[CaseTimes]:
    """The times from which ``to_samples`` made ``samples``, one entry per process; the inverse of it.

    Raises:
        ValueError: a part is missing, or the lengths of the parts do not match.
    """
    count = len({name.partition(":")[0] for name in samples})
    try:
        return [
            _process_of(
                case,
                method,
                {name.partition(": ")[2]: part for name, part in samples.items() if name.startswith(start)},
            )
            for start in (f"process {number}: " for number in range(1, count + 1))
        ]
    except (KeyError, IndexError) as error:
        raise ValueError(f"{case}: the raw times are incomplete: {error}") from error


def _process_of(case: str, method: str, part: Mapping[str, Sequence[float]]) -> CaseTimes:
    def blocks(orders: str, seconds: str) -> tuple[Block, ...]:
        times = iter(part[seconds])
        fours = zip(part[orders], zip(times, times, times, times, strict=True), strict=True)
        return tuple(Block(ORDERS[int(order)], four) for order, four in fours)

    verified, wrong = part["verified, wrong"]
    batches = zip(part["batch arm"], part["batch length"], part["batch"], strict=True)
    return CaseTimes(
        case=case,
        method=method,
        slots=int(part["slots"][0]),
        blocks=blocks("order", "blocks"),
        same=blocks("same order", "same"),
        stream=tuple(part["stream"]),
        novel=tuple(part["novel"]),
        batches=tuple((BATCH_ARMS[int(arm)], int(length), seconds) for arm, length, seconds in batches),
        verified=int(verified),
        wrong=int(wrong),
        # older records have none
        stopped=tuple(
            (int(calls), seconds)
            for calls, seconds in zip(part.get("stopped calls", ()), part.get("stopped", ()), strict=True)
        ),
        first=tuple(part.get("first of stream", ())),
        early=int(sum(part.get("early", ()))),
    )


def combined(cases: Sequence[CaseTimes]) -> tuple[Interval, float]:
    """The geometric mean over cases, block by block, and its floor (the mean of the cases' floors)."""
    values = [fmean(block) for block in zip(*(case.values for case in cases), strict=True)]
    return interval(values), fmean(case.floor.size for case in cases)


def verdict_of_process(cases: Sequence[CaseTimes], target: float) -> Verdict:
    """The verdict of one process.

    Where the baseline differs from itself (an unsound floor), a difference larger than that floor still
    counts. A smaller one gives INFRA_ERROR.
    """
    measured, floor_size = combined(cases)
    decided = decide(measured, floor_size, target)
    if decided is Verdict.AMBIGUOUS and not all(case.floor.sound for case in cases):
        return Verdict.INFRA_ERROR
    return decided


def conclude(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The verdict of several processes; None if another measurement is needed.

    The first clear verdict that two processes share counts. After ``PROCESSES`` processes the verdict is
    AMBIGUOUS, which counts in the student's favour, unless one was UNTRUSTED or all were FAIL or INFRA_ERROR.
    """
    votes = Counter(verdicts)
    for clear in (Verdict.UNTRUSTED, Verdict.FAIL, Verdict.PASS):
        if votes[clear] >= 2:
            return clear
    if len(verdicts) < PROCESSES:
        return None
    if votes[Verdict.UNTRUSTED]:
        return Verdict.UNTRUSTED
    return Verdict.AMBIGUOUS if votes[Verdict.PASS] or votes[Verdict.AMBIGUOUS] else Verdict.INFRA_ERROR
