"""What an assignment may demand beside right results and speed: each measure once, with its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

DemandMeasure = Literal["code", "spread", "launches", "kernels", "shared", "atomics", "sectors", "headers"]


@dataclass(frozen=True)
class Measured:
    """A figure that can be demanded.

    Attributes:
        words: what is counted or compared.
        fault: what is wrong where the demand is not met, in a few words.
        observation: the same as a sentence without its end, with {} for the figure.
        digits: behind the point.
        counted: whether the simulator counts it, in all cases or in those that are most like the timed ones.
    """

    words: str
    fault: str
    observation: str
    digits: int = 0
    counted: bool = True


MEASURES: dict[DemandMeasure, Measured] = {
    "code": Measured(
        "bytes of machine code over the reference's",
        "the code is too large",
        "It has {} times the reference's bytes of machine code",
        digits=2,
        counted=False,
    ),
    "spread": Measured(
        "largest over smallest speedup",
        "it is much slower in some cases",
        "The largest speedup is {} times the smallest",
        digits=2,
        counted=False,
    ),
    "launches": Measured(
        "launches of kernels in one call",
        "the number of launches is not the one that is asked for",
        "A call launches {} kernels",
    ),
    "kernels": Measured(
        "different kernels that are launched",
        "the number of kernels is not the one that is asked for",
        "The calls launch {} different kernels",
    ),
    "shared": Measured(
        "accesses of warps to shared memory",
        "shared memory is not used as is asked for",
        "Warps access shared memory {} times",
    ),
    "atomics": Measured(
        "atomic operations of threads",
        "atomics are not used as is asked for",
        "Threads make {} atomic operations",
    ),
    "sectors": Measured(
        "sectors of global memory over the fewest that would do",
        "neighbouring threads do not touch neighbouring addresses",
        "Accesses to global memory take {} times the sectors of 32 bytes that would do",
        digits=2,
    ),
    "headers": Measured(
        "includes of headers that are not to be used",
        "it includes what is not to be used",
        "It has {} includes of headers that are not to be used",
        counted=False,
    ),
}


def figure(measure: DemandMeasure, number: float) -> str:
    """A figure as reports print it."""
    return f"{number:,.{MEASURES[measure].digits}f}"


def bound(most: float | None, least: float | None) -> str:
    """What is asked for, behind a figure."""
    return f"at least {least:g}" if most is None else f"at most {most:g}"
