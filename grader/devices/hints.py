"""What the sim's counts say about each line: memory traffic, bank conflicts and idle lanes. Never a speed."""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from operator import add, attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING

from grader.devices.device import Hint
from grader.records.findings import LineCount

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST = 8  # hints per problem; the most wasteful come first
WASTE = 1.5  # traffic beyond this multiple of the least possible is worth a word
SHARE = 0.02  # of all warp instructions: a line below it does not matter
IDLE = 0.5  # a line that runs with fewer lanes than this share
_SUMMED = tuple(field.name for field in fields(LineCount) if field.name not in {"kernel", "file", "line"})
_numbers = attrgetter(*_SUMMED)


def hints(counts: Iterable[LineCount]) -> tuple[Hint, ...]:
    """At most ``MOST`` hints, the most wasteful first.

    A request is one warp instruction; the least possible is what its active lanes need when their addresses
    lie side by side (sectors of 32 bytes) or in different banks (passes over shared memory).
    """
    lines = summed(counts)
    total = sum(line.instructions for line in lines)
    found: list[tuple[float, Hint]] = []

    def say(waste: float, line: LineCount, message: str) -> None:
        found.append((waste, Hint(line.kernel, line.file, line.line, message)))

    for line in lines:
        if line.instructions < SHARE * total:
            continue
        if line.global_sectors > WASTE * line.minimal_sectors > 0:
            here, least = (n / line.global_requests for n in (line.global_sectors, line.minimal_sectors))
            say(
                line.global_sectors - line.minimal_sectors,
                line,
                f"global memory: {here:.3g} sectors of 32 bytes per request where {least:.3g} would do; "
                "let neighbouring threads touch neighbouring addresses",
            )
        if line.shared_wavefronts > WASTE * line.minimal_wavefronts > 0:
            here, least = (
                n / line.shared_requests for n in (line.shared_wavefronts, line.minimal_wavefronts)
            )
            say(
                line.shared_wavefronts - line.minimal_wavefronts,
                line,
                f"shared memory: bank conflicts, {here:.3g} passes per request where {least:.3g} would do; "
                "spread the addresses of a warp over the 32 banks",
            )
        if line.lanes < IDLE * 32 * line.instructions and line.instructions > 5 * SHARE * total:
            lanes = max(1.0, line.lanes / line.instructions)  # instructions that a condition skips have none
            say(
                line.instructions - line.lanes / 32,
                line,
                f"only {lanes:.3g} of 32 threads of a warp work here on average",
            )
    found.sort(key=lambda pair: (-pair[0], pair[1].file, pair[1].line, pair[1].message))
    return tuple(hint for _, hint in found[:MOST])


def summed(counts: Iterable[LineCount]) -> list[LineCount]:
    """The counts of each line over all launches, whatever instance of a template ran there."""
    sums: dict[tuple[str, str, int], tuple[int, ...]] = {}
    for count in counts:
        place = count.kernel.partition("<")[0], _name(count.file), count.line
        numbers = _numbers(count)
        before = sums.get(place)
        sums[place] = tuple(map(add, before, numbers)) if before else numbers
    return [LineCount(*place, *numbers) for place, numbers in sums.items()]


@lru_cache(maxsize=64)
def _name(file: str) -> str:
    return PurePath(file).name
