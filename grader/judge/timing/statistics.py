"""Computes a speed verdict from raw times, by pure functions of the record that anyone can check.

Baseline (A) and submission (B) run in blocks A B B A or B A A B. The value of a block is the log of its
speedup. Order statistics give an interval around the median of the values. The same procedure with the
baseline against itself gives the noise floor: the smallest difference that this machine can measure.

A process measures until its verdict is clear: it looks at its values after 6, 12, 20, 40 and 80 blocks. The
intervals of all looks together cover the median with 95 % (repeated confidence intervals: Jennison and
Turnbull, Journal of the Royal Statistical Society B 51, 1989, 305-361). Each is the interval of a sign test,
and the number of values above a median of 0 is a random walk, so the levels of the looks follow exactly from
the binomial distribution, whatever distribution the values have. How much of the 5 % may be spent by which
look is a function of the share of the blocks that were measured (Lan and DeMets, Biometrika 70, 1983,
659-663).

Layer: standard library and the verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, median
from typing import TYPE_CHECKING

from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CONFIDENCE = 0.95
ORDERS = ("ABBA", "BAAB")
NOTHING = "nothing"  # the arm whose sweeps only restore the arrays
BATCH_ARMS = ("submission", NOTHING, "baseline")
PROCESS, REGION = "process", "region"
OF_PROGRAMS = (PROCESS, REGION)  # methods: a whole process, or what it says of a region
FEWEST_BLOCKS = 6  # with fewer values there is no interval of this confidence
PROCESSES = 4  # at most: two that must agree, and two more if they do not
BLOCKS = (20, 20, 40, 80)  # per process, at most
LOOKS = (6, 12, 20, 40, 80)  # blocks after which a process may find that its verdict is clear
SPENDING_EXPONENT = 1 / 6  # see ``spent``
POINTS_KNOWN = 0.01  # share of a problem's points; points in proportion to speed need not be known better
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


def spent(share: float) -> float:
    """The probability of an error that looks may have spent when ``share`` of all blocks are measured.

    ``(1 - CONFIDENCE) * share ** SPENDING_EXPONENT``, of the family of Kim and DeMets (Biometrika 74, 1987,
    149-154), in which an exponent of 1 resembles Pocock's looks and 3 those of O'Brien and Fleming. No
    interval of six values misses the median less often than in 1 of 32 times. So whoever wants to end there
    has to spend 3.125 % there, and 1/6 is the largest exponent of the form 1/n that does. The later looks
    lose little by it: after 80 blocks the interval reaches from the 29th value to the 52nd, and by itself
    would reach from the 31st to the 50th.
    """
    return (1 - CONFIDENCE) * math.pow(share, SPENDING_EXPONENT)


@cache
def ranks_of_looks() -> Mapping[int, int]:
    """For each of ``LOOKS`` the k for which the k-th smallest and k-th largest value are its interval.

    The number of values above the true median makes a step up or stays, each with probability 1/2, at each
    block. A look misses the median if that number is less than k or more than the number of blocks less k.
    Each look gets the largest k with which it and those before it have missed with at most ``spent``.
    """
    ranks: dict[int, int] = {}
    within, missed, before = {0: 1.0}, 0.0, 0  # probability of each number while no look has missed
    for blocks in LOOKS:
        for _ in range(blocks - before):
            within = {
                above: (within.get(above, 0.0) + within.get(above - 1, 0.0)) / 2
                for above in range(max(within) + 2)
            }

        def outside(k: int, blocks: int = blocks, within: Mapping[int, float] = within) -> float:
            return sum(chance for above, chance in within.items() if not k <= above <= blocks - k)

        k = 0
        while missed + outside(k + 1) <= spent(blocks / LOOKS[-1]):
            k += 1
        missed += outside(k)
        within = {above: chance for above, chance in within.items() if k <= above <= blocks - k}
        ranks[blocks], before = k, blocks
    return ranks


def interval(values: Sequence[float], *, at_look: bool = False) -> Interval:
    """The median of ``values`` and its interval by order statistics: exact, whatever their distribution.

    Args:
        values: of blocks, log ratios.
        at_look: whether measuring would have ended earlier or may go on, depending on the values.

    Raises:
        ValueError: there are too few values, one is not finite, or there is no look after so many.
    """
    if not all(map(math.isfinite, values)):
        raise ValueError("a value is not finite")
    count, ordered = len(values), sorted(values)
    if at_look and count not in LOOKS:
        raise ValueError(f"nobody looks after {count} values")
    k = ranks_of_looks()[count] if at_look else rank(count)
    return Interval(median(ordered), ordered[k - 1], ordered[-k])


@dataclass(frozen=True)
class Floor:
    """How much the baseline differs from itself, as a log ratio; unsound if 0 lies outside the interval."""

    size: float
    sound: bool


def floor(values: Sequence[float], *, at_look: bool = False) -> Floor:
    """The floor of A/A blocks: the larger of the interval's half-width and the median's size.

    Raises:
        ValueError: see ``interval``.
    """
    own = interval(values, at_look=at_look)
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
class Goal:
    """What the speed of a problem is worth.

    Attributes:
        target: the speedup that earns all points for speed.
        steps: smaller speedups that earn some of them; without any, points are in proportion to the speedup.
        share: of the problem's points, those for speed.
    """

    target: float
    steps: tuple[float, ...] = ()
    share: float = 1.0


def clear(measured: Interval, floor_size: float, goal: Goal) -> bool:
    """Whether more blocks could change neither verdict nor points, but for ``POINTS_KNOWN`` of all points.

    The interval, widened by floor and margin, has to lie on one side of the target, and of each step. Points
    that are in proportion to the speedup have to be known: half of what lies between those of both ends of
    the interval, widened by the floor, is at most ``POINTS_KNOWN`` of the problem's points.

    Raises:
        ValueError: the target is not positive.
    """
    verdict = decide(measured, floor_size, goal.target)
    if verdict is not Verdict.FAIL:
        return verdict is Verdict.PASS
    if goal.steps:
        return all(decide(measured, floor_size, step) is not Verdict.AMBIGUOUS for step in goal.steps)
    likely = measured.widened(floor_size)
    least, most = (min(1.0, math.exp(end) / goal.target) for end in (likely.low, likely.high))
    return goal.share * (most - least) / 2 <= POINTS_KNOWN


@dataclass(frozen=True)
class CaseTimes:
    """What one process measured on one case; times of blocks are seconds of one sweep over ``slots`` calls.

    Attributes:
        case: name of the case.
        method: ``graph``, ``events`` or ``host``, or one of ``OF_PROGRAMS``.
        slots: calls per sweep.
        blocks: baseline against submission.
        same: baseline against baseline; each of these blocks follows one of ``blocks``.
        stream: times of the streaming kernel, which reads and writes as many bytes.
        novel: times of the submission on contents that it had never seen, new ones for each sweep.
        novel_calls: how many calls such a sweep had; 0 in older records, where it had all.
        batches: arm, number of sweeps and seconds by the judge's own clock. They come in pairs of equal
            length, one after the other: one is the submission or the baseline, the other only restores.
        verified: number of calls whose outputs the judge compared.
        wrong: number of those calls with wrong outputs.
        stopped: number of calls and seconds of the submission's sweeps that ended early.
        first: seconds of the streaming kernel's sweeps that ended after its first call.
        early: number of calls that were left out by ending early, but whose outputs were written.
        looks: after how many blocks it was looked whether the verdict is clear, the last of them after all;
            none where the number of blocks was fixed.
        baseline_calls: how many calls the baseline's sweeps had, in blocks and batches; 0 in older records,
            where they had all. In blocks their seconds are multiplied to be those of ``slots`` calls.
        around: of programs that time a region: seconds that the rest of the process took, for each of
            ``blocks``.
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
    looks: tuple[int, ...] = ()
    novel_calls: int = 0
    baseline_calls: int = 0
    around: tuple[Block, ...] = ()

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
        return floor([block.value for block in self.same], at_look=bool(self.looks))

    @property
    def bandwidth_fraction(self) -> float | None:
        """The streaming kernel's time over the submission's; None where none was run."""
        return median(self.stream) / median(self.times("B")) if self.stream else None

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
        around=tuple(block for process in times for block in process.around),
        looks=(),
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
        "novel calls": [times.novel_calls],
        "batch arm": [BATCH_ARMS.index(arm) for arm, _, _ in times.batches],
        "batch length": [length for _, length, _ in times.batches],
        "batch": [seconds for *_, seconds in times.batches],
        "verified, wrong": [times.verified, times.wrong],
        "stopped calls": [calls for calls, _ in times.stopped],
        "stopped": [seconds for _, seconds in times.stopped],
        "first of stream": times.first,
        "early": [times.early],
        "looks": times.looks,
        "baseline calls": [times.baseline_calls],
        "around": [seconds for block in times.around for seconds in block.seconds],
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
        looks=tuple(map(int, part.get("looks", ()))),
        novel_calls=int(sum(part.get("novel calls", ()))),
        baseline_calls=int(sum(part.get("baseline calls", ()))),
        around=blocks("order", "around") if part.get("around") else (),
    )


def combined(cases: Sequence[CaseTimes]) -> tuple[Interval, float]:
    """The geometric mean over cases, block by block, and its floor (the mean of the cases' floors).

    Raises:
        ValueError: the cases differ in their numbers of blocks; or see ``interval``.
    """
    values = [fmean(block) for block in zip(*(case.values for case in cases), strict=True)]
    return interval(values, at_look=bool(cases[0].looks)), fmean(case.floor.size for case in cases)


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
