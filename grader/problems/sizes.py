"""Which sizes and distributions a problem is judged with, from the range of each size.

Each size takes the values where kernels go wrong, while the others stay small: 1, the borders of a warp and
of a block, powers of two and their neighbours, primes, the largest one, and one beyond 2^20.

Layer: imports numpy, distributions and contents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.problems.contents import NORMAL
from grader.problems.distributions import STREAMS, build_cases, generator
from grader.problems.problem import fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.problems.problem import Case, Range

    Sizes = Mapping[str, int]
    Row = tuple[str, Sizes, str]

SMALL, BORDER, LARGE, MILLION = "small sizes", "sizes around a border", "large sizes", "beyond a million"

_SMALL = (1, 2, 7, 30)
_BORDERS = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 509, 511, 512, 513, 1023, 1024, 1025)
_LARGE = (1999, 4099)
_USUAL, _MIDDLE, _LONG = 5, 37, 700
_BEYOND = (1 << 20) + 7
MOST_ELEMENTS = 1 << 21  # of all arrays of a case
MANY_ELEMENTS = 1 << 20  # from so many on a case runs in program order only


def derived(
    seed: int,
    ranges: Mapping[str, Range],
    distributions: Sequence[str],
    passed: Sequence[str],
    elements: Callable[[Sizes], int],
    by_hand: Sequence[Row] = (),
    *,
    most: int,
    streams: bool,
) -> tuple[Case, ...]:
    """The cases of a problem.

    Args:
        seed: of the contents, and of a few sizes.
        ranges: by size.
        distributions: of the contents.
        passed: the sizes that a call which is queued behind one with streams may take smaller.
        elements: of all arrays, for some sizes.
        by_hand: further cases, however many elements they have: group, sizes and distribution.
        most: of the elements of all others; four times as many with a size beyond a million.
        streams: whether there are cases whose arrays travel through the launcher's streams.
    """
    table: dict[tuple[object, ...], Row] = {}
    fitting = (
        row
        for row in _rows(seed, ranges, distributions)
        if elements(row[1]) <= most * (4 if row[0] == MILLION else 1)
    )
    for group, sizes, distribution in (*fitting, *by_hand):
        if streams or group != STREAMS:
            table.setdefault((*sizes.values(), distribution), (group, sizes, distribution))
    cases = sorted(build_cases(seed, table.values()), key=lambda case: case.group == STREAMS)
    return tuple(suited(case, ranges, passed, elements) for case in cases)


def suited(
    case: Case, ranges: Mapping[str, Range], passed: Sequence[str], elements: Callable[[Sizes], int]
) -> Case:
    """``case`` with what ``derived`` says of queued calls and of large arrays."""
    return replace(
        case,
        queued={name: ranges[name].within(size) for name, size in case.queued.items() if name in passed},
        orders=1 if elements(case.sizes) >= MANY_ELEMENTS else None,
    )


def _every(ranges: Mapping[str, Range], value: int) -> dict[str, int]:
    """All sizes at the same value, or near it; those that are at most another one at half of it."""
    sizes = {name: limits.nearest(value // 2 if limits.at_most else value) for name, limits in ranges.items()}
    return fitted(ranges, sizes, ())


def _rows(seed: int, ranges: Mapping[str, Range], distributions: Sequence[str]) -> Iterator[Row]:
    draw = generator(seed)

    def at(sizes: Sizes, name: str, value: int) -> dict[str, int]:
        """Twice as much of what ``name`` is at most: where both are equal, many mistakes do not show."""
        varied, above = ranges[name].nearest(value), ranges[name].at_most
        twice = {above: max(sizes[above], ranges[above].nearest(2 * varied))} if above else {}
        return fitted(ranges, {**sizes, **twice, name: varied}, (name,))

    usual, middle = _every(ranges, _USUAL), _every(ranges, _MIDDLE)
    last = [name for name, limits in ranges.items() if not limits.at_most][-1]
    for sizes in (middle, at(usual, last, _LONG)):
        yield STREAMS, sizes, NORMAL
    for name, limits in ranges.items():
        for group, values in ((SMALL, _SMALL), (BORDER, _BORDERS), (LARGE, (*_LARGE, limits.high))):
            for value in values:
                if limits.low <= value <= limits.high and limits.nearest(value) - value < limits.multiple_of:
                    yield group, at(usual, name, value), NORMAL
        if limits.high >= _BEYOND:
            yield MILLION, at(_every(ranges, 3), name, _BEYOND), NORMAL
        yield BORDER, at(middle, name, int(draw.integers(34, 1000))), NORMAL
    long = at(usual, last, _LONG)
    for distribution in distributions:
        if distribution != NORMAL:
            yield distribution, middle, distribution
            yield distribution, long, distribution
