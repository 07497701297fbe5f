"""A machine whose true speedup is known, with noise as recorded on GPUs, and gradings on it."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import TYPE_CHECKING

from grader.judge.timing.statistics import (
    BLOCKS,
    LOOKS,
    ORDERS,
    Block,
    CaseTimes,
    Goal,
    clear,
    combined,
    conclude,
    verdict_of_process,
)

if TYPE_CHECKING:
    from grader.records.verdict import Verdict


class Machine:
    """Times with a true speedup and everything that disturbs them."""

    def __init__(self, seed: int, speedup: float, noise: float = 0.003, trouble: str = "") -> None:
        self.random = random.Random(seed)
        self.speedup, self.noise, self.trouble = speedup, noise, trouble
        self.clock, self.lag = 0, 0.0

    def time(self, arm: str, place: int) -> float:
        self.clock += 1
        value = 1e-3 / (self.speedup if arm == "B" else 1.0)
        value *= math.exp(self.random.gauss(0, self.noise))
        if self.trouble == "drift":
            value *= 1 + 0.0005 * self.clock
        if self.trouble == "heat":
            value *= 1.2 - 0.2 * math.exp(-self.clock / 40)
        if self.trouble == "slots":
            value *= 1.05 if place == 0 else 1
        if self.trouble == "outliers" and self.random.random() < 0.03:
            value *= 100
        if self.trouble == "modes":
            value *= 1.3 if (self.clock // 37) % 2 else 1
        if self.trouble == "quantised":
            value = math.ceil(value / 2e-6) * 2e-6
        if self.trouble == "correlated":
            self.lag = 0.9 * self.lag + self.random.gauss(0, self.noise)
            value *= math.exp(self.lag)
        return value

    def block(self, arms: str = "AB") -> Block:
        order = self.random.choice(ORDERS)
        names = [arms[0] if arm == "A" else arms[1] for arm in order]
        one, two, three, four = (self.time(name, place) for place, name in enumerate(names))
        return Block(order, (one, two, three, four))

    def case(self, blocks: int = 20, looks: tuple[int, ...] = ()) -> CaseTimes:
        pairs = [(self.block(), self.block("AA")) for _ in range(blocks)]
        return CaseTimes(
            "case",
            "graph",
            4,
            *(tuple(column) for column in zip(*pairs, strict=True)),
            (1e-4,),
            (1e-3,),
            (),
            8,
            0,
            looks=looks,
        )

    def process(self, index: int, goal: Goal) -> CaseTimes:
        """A process of a grading, which ends when its verdict is clear or it has as many blocks as it may."""
        whole, times = self.case(BLOCKS[index]), None
        for blocks in (look for look in LOOKS if look <= BLOCKS[index]):
            looks = LOOKS[: LOOKS.index(blocks) + 1]
            times = replace(whole, blocks=whole.blocks[:blocks], same=whole.same[:blocks], looks=looks)
            if clear(*combined([times]), goal):
                break
        assert times is not None
        return times


def graded(
    source: random.Random, speedup: float, target: float, *, until_clear: bool, apart: float = 0.007
) -> tuple[Verdict, list[CaseTimes]]:
    """The verdict and the processes of a grading.

    Args:
        source: of the noise.
        speedup: the true one.
        target: of the grading.
        until_clear: whether a process ends when its verdict is clear, or measures a fixed number of blocks.
        apart: by how much processes differ (CV): 0.7 % is more than the 0.5 % seen on an H100.
    """
    told: list[Verdict] = []
    processes = []
    while (concluded := conclude(told)) is None:
        machine = Machine(source.getrandbits(32), speedup * math.exp(source.gauss(0, apart)))
        index = len(told)
        case = machine.process(index, Goal(target)) if until_clear else machine.case(BLOCKS[index])
        processes.append(case)
        told.append(verdict_of_process([case], target))
    return concluded, processes
