"""What code has reached while cases ran: which ways it went, and between which numbers its comparisons were.

It comes from the simulator, of kernels from the device itself and of host code from the student's process. So
it may choose what else to run, and never decides anything.

Layer: imports findings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.records.findings import Line


class Side(StrEnum):
    """Where the first number of a comparison was to the second."""

    BELOW = "below"
    EQUAL = "equal"
    ABOVE = "above"


class Way(StrEnum):
    """What a branch, or another instruction with a predicate, did for some thread."""

    TAKEN = "taken"
    PASSED = "not taken"


@dataclass(frozen=True)
class Site:
    """A place in built code.

    Attributes:
        kernel: that it is in; empty for host code.
        code: the number of a kernel's instruction. Of host code an address in the library, and where the
            function around it was called; 0 where that is not known.
        number: of the case of a switch; 0 for all else.
    """

    kernel: str
    code: tuple[int, ...]
    number: int = 0


@dataclass(frozen=True)
class Met:
    """The numbers that a comparison of integers has met.

    Attributes:
        sides: where the first was to the second.
        first: the lowest and the highest of the first one.
        second: those of the second one.
        equality: whether the comparison tells equal from unequal alone.
    """

    sides: frozenset[Side]
    first: tuple[int, int]
    second: tuple[int, int]
    equality: bool = False


@dataclass(frozen=True)
class Launches:
    """The launches of a kernel.

    Attributes:
        fewest_blocks: of a launch.
        most_blocks: of a launch.
        most_across: the most blocks along y or z of a grid.
        resident: how many blocks the GPU holds at once, where blocks hand over to each other; otherwise 0.
        threads: the most of a block.
        shared_bytes: the most of a block.
    """

    fewest_blocks: int
    most_blocks: int
    most_across: int
    resident: int
    threads: int
    shared_bytes: int


@dataclass(frozen=True)
class Coverage:
    """What a call has reached.

    Attributes:
        ways: those of instructions with a predicate; empty for one that was not executed.
        comparisons: those that were made.
        blocks: addresses of the blocks of host code that ran.
        launches: by kernel.
        lines: of the sites in kernels.
    """

    ways: Mapping[Site, frozenset[Way]] = field(default_factory=dict)
    comparisons: Mapping[Site, Met] = field(default_factory=dict)
    blocks: frozenset[int] = frozenset()
    launches: Mapping[str, Launches] = field(default_factory=dict)
    lines: Mapping[Site, Line] = field(default_factory=dict)


NOTHING = Coverage()
"""The coverage of a call that was not observed."""
