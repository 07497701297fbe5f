"""Which sizes and distributions a problem is judged with, from the range of each size.

Each size takes the values where kernels go wrong, while the others stay small: 1, the borders of a warp and
of a block, powers of two and their neighbours, primes, the largest one, and one beyond 2^20.

Where such a case has too many elements, or asks for too much work, its other sizes are halved until it fits.

Layer: imports numpy, distributions and contents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from grader.problems.contents import NORMAL
from grader.problems.distributions import STREAMS, build_cases, generator
from grader.problems.problem import fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from grader.problems.problem import Case, Range

    Sizes = Mapping[str, int]
    Row = tuple[str, Sizes, str]
    _Wanted = tuple[Row, tuple[str, ...]]

SMALL, BORDER, LARGE, MILLION = "small sizes", "sizes around a border", "large sizes", "beyond a million"

_SMALL = (1, 2, 7, 30)
_BORDERS = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 509, 511, 512, 513, 1023, 1024, 1025)
_LARGE = (1999, 4099)
_USUAL, _MIDDLE, _LONG = 5, 37, 700
_BEYOND = (1 << 20) + 7
MOST_ELEMENTS = 1 << 21  # of all arrays of a case
MANY_ELEMENTS = 1 << 20  # from so many on a case runs in program order only
SECONDS = 20.0  # of the simulator on two cores, for the cases of a problem

_PER_SECOND = 25e6  # multiplications that a simple kernel makes there, of a convolution for example
_OF_ELEMENT = 4  # multiplications take as long as drawing, storing and comparing an element
_OF_CALL = 0.01  # seconds
_ORDERS = 3  # in which most cases run
_TRIES = 12  # to halve what a case may take


@dataclass(frozen=True)
class Cost:
    """What the cases of a problem may cost.

    Attributes:
        elements: of all arrays, for some sizes.
        multiplications: of the formula, for some sizes.
        most: elements of a derived case; four times as many with a size beyond a million.
        seconds: that the simulator may take for all derived cases, as far as they can be lowered.
    """

    elements: Callable[[Sizes], int]
    multiplications: Callable[[Sizes], int]
    most: int = MOST_ELEMENTS
    seconds: float = SECONDS

    def of_case(self, sizes: Sizes, orders: int | None = None) -> float:
        """About how many seconds the simulator takes on two cores for a case in all its orders."""
        calls = orders or (1 if self.elements(sizes) >= MANY_ELEMENTS else _ORDERS)
        return calls * (_OF_CALL + self.of_work(sizes))

    def of_work(self, sizes: Sizes) -> float:
        """The part of a call's seconds that smaller sizes save."""
        return (self.multiplications(sizes) + _OF_ELEMENT * self.elements(sizes)) / _PER_SECOND


def derived(
    seed: int,
    ranges: Mapping[str, Range],
    distributions: Sequence[str],
    passed: Sequence[str],
    cost: Cost,
    by_hand: Sequence[Row] = (),
    *,
    streams: bool,
) -> tuple[Case, ...]:
    """The cases of a problem.

    Args:
        seed: of the contents, and of a few sizes.
        ranges: by size.
        distributions: of the contents.
        passed: the sizes that a call which is queued behind one with streams may take smaller.
        cost: what the cases may cost.
        by_hand: further cases, whatever they cost: group, sizes and distribution.
        streams: whether there are cases whose arrays travel through the launcher's streams.
    """
    table: dict[tuple[object, ...], Row] = {}
    for group, sizes, distribution in (
        *_affordable([*_rows(seed, ranges, distributions)], ranges, cost),
        *by_hand,
    ):
        if streams or group != STREAMS:
            table.setdefault((*sizes.values(), distribution), (group, sizes, distribution))
    cases = sorted(build_cases(seed, table.values()), key=lambda case: case.group == STREAMS)
    return tuple(suited(case, ranges, passed, cost.elements) for case in cases)


def _affordable(rows: Sequence[_Wanted], ranges: Mapping[str, Range], cost: Cost) -> list[Row]:
    """The rows, with sizes at which all together cost no more than they may; without what never fits."""
    limit = cost.seconds
    for _ in range(_TRIES):
        fitting = [row for wanted in rows if (row := _lowered(wanted, ranges, cost, limit)) is not None]
        if sum(_ORDERS * cost.of_work(sizes) for _, sizes, _ in fitting) <= cost.seconds:
            break
        limit /= 2
    return fitting


def _lowered(wanted: _Wanted, ranges: Mapping[str, Range], cost: Cost, seconds: float) -> Row | None:
    """A row with its other sizes halved until it fits; None if it does not where they are at their least."""
    (group, sizes, distribution), varied = wanted
    most = cost.most * (4 if group == MILLION else 1)
    while cost.elements(sizes) > most or _ORDERS * cost.of_work(sizes) > seconds:
        halved = {
            name: limits.within(sizes[name] // 2) for name, limits in ranges.items() if name not in varied
        }
        lower = fitted(ranges, {**sizes, **halved}, varied)
        if lower == sizes:
            return None
        sizes = lower
    return group, sizes, distribution


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


def _rows(seed: int, ranges: Mapping[str, Range], distributions: Sequence[str]) -> Iterator[_Wanted]:
    """The rows, each with the size that it is about, if there is one."""
    draw = generator(seed)

    def at(sizes: Sizes, name: str, value: int) -> dict[str, int]:
        """Twice as much of what ``name`` is at most: where both are equal, many mistakes do not show."""
        varied, above = ranges[name].nearest(value), ranges[name].at_most
        twice = {above: max(sizes[above], ranges[above].nearest(2 * varied))} if above else {}
        return fitted(ranges, {**sizes, **twice, name: varied}, (name,))

    usual, middle = _every(ranges, _USUAL), _every(ranges, _MIDDLE)
    last = [name for name, limits in ranges.items() if not limits.at_most][-1]
    long = at(usual, last, _LONG)
    yield (STREAMS, middle, NORMAL), ()
    yield (STREAMS, long, NORMAL), (last,)
    for name, limits in ranges.items():
        for group, values in ((SMALL, _SMALL), (BORDER, _BORDERS), (LARGE, (*_LARGE, limits.high))):
            for value in values:
                if limits.low <= value <= limits.high and limits.nearest(value) - value < limits.multiple_of:
                    yield (group, at(usual, name, value), NORMAL), (name,)
        if limits.high >= _BEYOND:
            yield (MILLION, at(_every(ranges, 3), name, _BEYOND), NORMAL), (name,)
        yield (BORDER, at(middle, name, int(draw.integers(34, 1000))), NORMAL), (name,)
    for distribution in distributions:
        if distribution != NORMAL:
            yield (distribution, middle, distribution), ()
            yield (distribution, long, distribution), (last,)
