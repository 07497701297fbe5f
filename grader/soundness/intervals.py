"""Where a kernel of tiers is wrong: limits on sizes, on products of sizes, and on counts in the contents.

Layer: imports problems.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.problems.sizes import MOST_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random

    from grader.problems.problem import Space

    Sizes = Mapping[str, int]

BUDGET = 4 * MOST_ELEMENTS
"""Elements of a case that the simulator takes: those of the largest derived cases."""

_DRAWS = 400  # of sizes in an interval; many miss it, or the budget
_SIZES = 6  # that cases are made of


@dataclass(frozen=True)
class Limit:
    """A number is at least ``low`` and less than ``high``.

    Attributes:
        name: of the number, as the kernel writes it.
        sizes: whose product it is; none where it is a count in the contents, or follows from sizes otherwise.
        low: the first value within.
        high: the first one beyond; None for no end.
    """

    name: str
    sizes: tuple[str, ...]
    low: int
    high: int | None = None

    def holds(self, sizes: Sizes) -> bool:
        """Whether inputs of these sizes are within; of a count, they may be."""
        if not self.sizes:
            return True
        value = math.prod(sizes[name] for name in self.sizes)
        return self.low <= value and (self.high is None or value < self.high)

    def __str__(self) -> str:
        """As a condition."""
        if self.high is None:
            return f"{self.name} >= {self.low:,}"
        return f"{self.low:,} <= {self.name} < {self.high:,}"


@dataclass(frozen=True)
class Interval:
    """The sizes that are within all of some limits."""

    limits: tuple[Limit, ...]

    def holds(self, sizes: Sizes) -> bool:
        """Whether inputs of these sizes may be within."""
        return all(limit.holds(sizes) for limit in self.limits)

    def __str__(self) -> str:
        """As a condition."""
        return " and ".join(map(str, self.limits))

    def smallest(self, space: Space) -> Sizes | None:
        """Sizes within that have few elements: the smallest ones, raised limit by limit; None if none are."""
        sizes = dict(space.least)
        for limit in self.limits:
            raised = [
                higher
                for name in dict.fromkeys(limit.sizes)
                if (higher := _raised(sizes, name, limit, space))
            ]
            if limit.sizes and not raised:
                return None
            sizes = min(raised, key=space.elements, default=sizes)
        return sizes if self.holds(sizes) else None

    def in_budget(self, space: Space) -> bool:
        """Whether the simulator can take an input within."""
        sizes = self.smallest(space)
        return sizes is not None and space.elements(sizes) <= BUDGET

    def drawn(self, space: Space, random: Random) -> tuple[Sizes, ...]:
        """Some sizes within that the simulator can take, from few elements to many."""
        ends = {name: self._ends(name, space) for name in space.ranges}
        draws = [
            {name: space.ranges[name].nearest(log_uniform(random, *ends[name])) for name in ends}
            for _ in range(_DRAWS)
        ]
        smallest = self.smallest(space)
        draws += [] if smallest is None else [dict(smallest)]
        within = {
            space.elements(sizes): sizes
            for sizes in draws
            if self.holds(sizes) and space.elements(sizes) <= BUDGET
        }
        ordered = [within[elements] for elements in sorted(within)]
        indices = {part * (len(ordered) - 1) // (_SIZES - 1) for part in range(_SIZES)}
        return tuple(ordered[index] for index in sorted(indices) if ordered)

    def _ends(self, name: str, space: Space) -> tuple[int, int]:
        """The smallest and the largest value of a size that its own limits leave."""
        low, high = space.ranges[name].low, space.ranges[name].high
        for limit in self.limits:
            if limit.sizes == (name,):
                low = max(low, limit.low)
                high = high if limit.high is None else min(high, limit.high - 1)
        return low, max(low, high)


def _raised(sizes: Sizes, name: str, limit: Limit, space: Space) -> dict[str, int] | None:
    """``sizes`` with one so large that ``limit`` holds; None if it cannot be."""
    power = limit.sizes.count(name)
    rest = math.prod(sizes[other] for other in limit.sizes if other != name)
    least = max(sizes[name], math.ceil((limit.low / rest) ** (1 / power)))
    higher = {**sizes, name: space.ranges[name].nearest(least)}
    return higher if limit.holds(higher) else None


def log_uniform(random: Random, low: int, high: int) -> int:
    """A number from ``low`` to ``high``, each octave as likely as any other; 0 counts as one half."""
    drawn = math.exp(random.uniform(math.log(low or 0.5), math.log(high + 1)))
    return min(high, max(low, int(drawn)))
