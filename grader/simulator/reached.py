"""What code has reached, as the simulated device tells it, and the :class:`Coverage` that this is.

The fields are those of the structs of the same names in ``device.h`` and ``server``; see ``server/wire.h``.

Layer: imports records.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress

from grader.records.coverage import Coverage, Launches, Met, Side, Site, Way
from grader.records.findings import Line

_BITS_64 = 1 << 64


@dataclass(frozen=True)
class _Numbers:
    """Whether the first number of a comparison was below, equal to or above the second; and the extremes."""

    below: bool
    equal: bool
    above: bool
    a_low: int
    a_high: int
    b_low: int
    b_high: int

    def met(self, *, signed: bool = True, equality: bool = False) -> Met | None:
        """What the comparison has met; None if it was not made."""
        sides = frozenset(compress(Side, (self.below, self.equal, self.above)))
        if not sides:
            return None
        first, second = (self.a_low, self.a_high), (self.b_low, self.b_high)
        return Met(
            sides,
            first if signed else (_unsigned(first[0]), _unsigned(first[1])),
            second if signed else (_unsigned(second[0]), _unsigned(second[1])),
            equality,
        )


@dataclass(frozen=True)
class ReachedWay:
    """An instruction of a kernel with a guard."""

    number: int
    file: str
    line: int
    taken: bool
    passed: bool


@dataclass(frozen=True)
class ReachedComparison(_Numbers):
    """A comparison of a kernel."""

    number: int
    file: str
    line: int
    is_signed: bool
    equality: bool


@dataclass(frozen=True)
class ReachedKernel:
    """What the launches of a kernel have reached."""

    kernel: str
    fewest_blocks: int
    most_blocks: int
    most_across: int
    resident: int
    threads: int
    shared_bytes: int
    ways: tuple[ReachedWay, ...]
    comparisons: tuple[ReachedComparison, ...]


@dataclass(frozen=True)
class ReachedHostSite(_Numbers):
    """A block or a comparison of instrumented host code."""

    at: tuple[int, ...]  # addresses: the program may have made them up
    number: int
    compares: bool


@dataclass(frozen=True)
class Reached:
    """What kernels and host code have reached."""

    kernels: tuple[ReachedKernel, ...]
    host: tuple[ReachedHostSite, ...]

    def coverage(self) -> Coverage:
        """What kernels and host code have reached, by site."""
        ways: dict[Site, frozenset[Way]] = {}
        comparisons: dict[Site, Met] = {}
        lines: dict[Site, Line] = {}
        for kernel in self.kernels:
            for guarded in kernel.ways:
                site = Site(kernel.kernel, (guarded.number,))
                lines[site] = Line(guarded.file, guarded.line)
                ways[site] = frozenset(compress(Way, (guarded.taken, guarded.passed)))
            for comparison in kernel.comparisons:
                site = Site(kernel.kernel, (comparison.number,))
                lines[site] = Line(comparison.file, comparison.line)
                if met := comparison.met(signed=comparison.is_signed, equality=comparison.equality):
                    comparisons[site] = met
        blocks = set()
        for code in self.host:
            addresses = tuple(map(_unsigned, code.at))
            if not code.compares:
                blocks.add(addresses[0])
            elif met := code.met():
                comparisons[Site("", addresses, code.number)] = met
        launches = {
            kernel.kernel: Launches(
                kernel.fewest_blocks,
                kernel.most_blocks,
                kernel.most_across,
                kernel.resident,
                kernel.threads,
                kernel.shared_bytes,
            )
            for kernel in self.kernels
        }
        return Coverage(ways, comparisons, frozenset(blocks), launches, lines)


def _unsigned(number: int) -> int:
    """The number with the same 64 bits and no sign."""
    return number % _BITS_64
