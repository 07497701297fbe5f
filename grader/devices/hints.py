"""Hints from the sim's counts for each line: memory traffic, bank conflicts and idle lanes; never a speed."""

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
WASTE = 1.5  # a line with more traffic than this multiple of the least possible gets a hint
SHARE = 0.02  # a line with a smaller share of all warp instructions gets no hint
IDLE = 0.5  # a line that runs with a smaller share of its lanes gets a hint
_SUMMED = tuple(field.name for field in fields(LineCount) if field.name not in {"kernel", "file", "line"})
_numbers = attrgetter(*_SUMMED)


def hints(counts: Iterable[LineCount]) -> tuple[Hint, ...]:
    """At most ``MOST`` hints, the most wasteful lines first.

    A request is one warp instruction. The least possible traffic is what its active lanes need when their
    addresses are adjacent (sectors of 32 bytes) or in different banks (passes over shared memory).
    """
    lines = summed(counts)
    total = sum(line.instructions for line in lines)
    weighted: list[tuple[float, Hint]] = []

    def add_hint(waste: float, line: LineCount, message: str) -> None:
        weighted.append((waste, Hint(line.kernel, line.file, line.line, message)))

    for line in lines:
        if line.instructions < SHARE * total:
            continue
        if line.global_sectors > WASTE * line.minimal_sectors > 0:
            actual, least = (n / line.global_requests for n in (line.global_sectors, line.minimal_sectors))
            add_hint(
                line.global_sectors - line.minimal_sectors,
                line,
                f"global memory: {actual:.3g} sectors of 32 bytes per request where {least:.3g} would do; "
                "let neighbouring threads touch neighbouring addresses",
            )
        if line.shared_wavefronts > WASTE * line.minimal_wavefronts > 0:
            actual, least = (
                n / line.shared_requests for n in (line.shared_wavefronts, line.minimal_wavefronts)
            )
            add_hint(
                line.shared_wavefronts - line.minimal_wavefronts,
                line,
                f"shared memory: bank conflicts, {actual:.3g} passes per request where {least:.3g} would do; "
                "spread the addresses of a warp over the 32 banks",
            )
        if line.lanes < IDLE * 32 * line.instructions and line.instructions > 5 * SHARE * total:
            lanes = max(
                1.0, line.lanes / line.instructions
            )  # an instruction that a condition skips has no active lane
            add_hint(
                line.instructions - line.lanes / 32,
                line,
                f"only {lanes:.3g} of 32 threads of a warp work here on average",
            )
    weighted.sort(key=lambda pair: (-pair[0], pair[1].file, pair[1].line, pair[1].message))
    return tuple(hint for _, hint in weighted[:MOST])


def summed(counts: Iterable[LineCount]) -> list[LineCount]:
    """The counts of each line, added over all launches and over all instances of a kernel template."""
    sums: dict[tuple[str, str, int], tuple[int, ...]] = {}
    for count in counts:
        line = count.kernel.partition("<")[0], _name(count.file), count.line
        numbers = _numbers(count)
        before = sums.get(line)
        sums[line] = tuple(map(add, before, numbers)) if before else numbers
    return [LineCount(*line, *numbers) for line, numbers in sums.items()]


@lru_cache(maxsize=64)
def _name(file: str) -> str:
    return PurePath(file).name
