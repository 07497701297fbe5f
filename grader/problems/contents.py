"""What the inputs of a problem hold: numbers of a kind, in distributions that hurt.

A problem's inputs are drawn once in the distribution ``NORMAL`` and once in each of the others that one of
them knows. Then those with the most dimensions of those that know it have it; the others stay normal.

Layer: imports numpy, distributions and element types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.problems.distributions import side_by_side, standard_normal
from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError

NORMAL = "normal"
OFFSET, HUGE, ZEROS, TINY = "large offset", "one huge element", "zeros", "tiny numbers"
EQUAL, REPEATED, HIDDEN, EXTREME = "equal numbers", "one index for all", "hidden by -inf", "extreme integers"
EVEN, LONG, LARGE = "segments of one length", "one long segment", "large numbers"
SIGNED, NEGATIVE_ZEROS = "zeros of both signs", "negative zeros"
SUBNORMAL, REPEATING = "subnormal numbers", "numbers that repeat"
SOME_LONG = "some long segments"
ASCENDING, DESCENDING = "in ascending order", "in descending order"
SCALED, SPANNING = "numbers of every magnitude", "integers that span a power of two"
LAST = "largest number last"
FIRST_ALIKE, SECOND_ALIKE = "alike at first", "every second one alike"
MOSTLY_EVEN = "segments mostly of one length"
LONG_PATH, HUB = "one long path", "edges of one vertex"
SPIKE, WHOLE, CANCELLING = "alike but one", "large whole numbers", "numbers that cancel"
FAR_BELOW, RANK_ONE, TINY_FIRST = "first number far below", "nearly of rank one", "tiny numbers first"
IN_GRIDS = frozenset(
    {SIGNED, NEGATIVE_ZEROS, SUBNORMAL, REPEATING, SOME_LONG, SCALED, SPANNING, LAST}
    | {FIRST_ALIKE, SECOND_ALIKE, MOSTLY_EVEN, SPIKE, WHOLE, CANCELLING, FAR_BELOW, RANK_ONE, TINY_FIRST}
)
"""Distributions of which only the cases of a grid make use."""

Numbers = NDArray[Any]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Numbers]
DrawAll = Callable[[np.random.Generator], Mapping[str, Any]]

_FEW = 3  # borders between segments
_MOVED = 16  # one of so many borders moves
_PAIRS = 2  # of numbers that change places
_MOST_RUNS = 64  # of numbers of one magnitude in a row
_LARGE = 1e4  # of types of 16 bits, numbers are smaller
_WHOLE = 1 << 22  # a thousand of half of it are more than an int holds
_DYADIC = np.array([-3, -0.5, 0.25, 1, 4])  # sums of thousands of one of them are exact


@dataclass(frozen=True)
class Linked:
    """What draws several arrays, and numbers, at once: see ``together``.

    Attributes:
        draws: by distribution, from a generator to each of them by name.
        shapes: by name.
    """

    draws: Mapping[str, DrawAll]
    shapes: Mapping[str, tuple[int, ...]]

    def drawn(self, random: np.random.Generator, distribution: str) -> Mapping[str, Numbers]:
        """All of them, in ``distribution`` where it is known, or else in the usual one.

        Raises:
            FormulaError: some are missing, or have other shapes.
        """
        drawn = self.draws.get(distribution, self.draws[NORMAL])(random)
        arrays = {name: np.asarray(numbers) for name, numbers in drawn.items()}
        shapes = {name: array.shape for name, array in arrays.items()}
        if shapes != self.shapes:
            raise FormulaError(f"inputs draws together {shapes}, and says that it draws {dict(self.shapes)}")
        return arrays


def _exchange(random: np.random.Generator, numbers: Numbers) -> None:
    """Let pairs of numbers change places; the first and the last one stay."""
    inner = numbers.reshape(-1)[1:-1]
    pairs = random.permutation(inner.size)[: 2 * _PAIRS]
    inner[pairs] = np.roll(inner[pairs], 1)


def _move_borders(random: np.random.Generator, offsets: Numbers) -> None:
    """Let some borders between segments move, if any can: each to another place between its neighbours."""
    movable = np.flatnonzero(offsets[2:] > offsets[:-2]) + 1
    for border in random.permutation(movable)[: max(_FEW, offsets.size // _MOVED)]:
        before, after = offsets[border - 1], offsets[border + 1]
        if before < after:  # still, where a neighbour has moved
            moved = random.integers(before, after)
            offsets[border] = moved + (moved >= offsets[border])


@dataclass(frozen=True)
class Content:
    """The content of an input array: its shape, and how its elements are drawn.

    Attributes:
        shape: its sizes.
        draws: how its numbers are drawn for a type, by distribution.
        below: what they stay below where a size decides it; otherwise 0.
        fixed: whether its elements belong where they are, so that they must not be rotated.
        linked: what draws it together with others.
        ends: between which any number of its type may be an element; None if it must not be just any number.
        move: lets a few of its numbers change places; None if they belong where they are.
    """

    shape: tuple[int, ...]
    draws: Callable[[str], Mapping[str, Draw]]
    below: int = 0
    fixed: bool = False
    linked: Linked | None = None
    ends: tuple[float, float] | None = None
    move: Callable[[np.random.Generator, Numbers], None] | None = None

    def drawn(self, random: np.random.Generator, dtype: str, distribution: str) -> NDArray[np.generic]:
        """The array in the type ``dtype``."""
        with np.errstate(over="ignore"):
            numbers = self.draws(dtype)[distribution](random, self.shape)
            return numbers.astype(DTYPES[dtype].storage, copy=False)

    def marked(
        self, numbers: NDArray[np.generic], mark: float, dtype: str, distribution: str
    ) -> NDArray[np.generic]:
        """``numbers`` with ``mark`` in all places; of zeros only in the first one of each row."""
        if self.can_hold(mark, dtype, distribution):
            numbers[(..., 0) if distribution == ZEROS else ...] = mark
        return numbers

    def can_hold(self, mark: float, dtype: str, distribution: str) -> bool:
        """Whether its elements may be ``mark``, whose square has to fit into the type."""
        kind = DTYPES[dtype]
        if self.ends is None or not self.ends[0] <= mark <= self.ends[1] or not self.shape:
            return False
        if kind.exact:
            return mark.is_integer()
        most = kind.scale.huge if distribution == EQUAL else math.sqrt(kind.largest)
        return abs(mark) <= most

    def also(self, distribution: str, draw: Draw) -> Content:
        """The same content, also in a further ``distribution``, which ``draw`` draws for every type."""
        return replace(self, draws=lambda dtype: {**self.draws(dtype), distribution: draw})


@dataclass(frozen=True)
class Number:
    """A scalar of a launcher that is no size: ``usual``, and in grids drawn from ``low`` to ``high``.

    One in four of the drawn ones is an end, zero, one or minus one, as far as they lie between the ends.
    """

    usual: float
    low: float
    high: float

    def drawn(self, random: np.random.Generator) -> float:
        """A value for a case of a grid."""
        if random.random() < 0.25:
            special = [number for number in (-1, 0, 1) if self.low <= number <= self.high]
            return float(random.choice([self.low, self.high, *special]))
        return float(random.uniform(self.low, self.high))


def real(*shape: int) -> Content:
    """Normal numbers; also with a mean of 100, with one huge element in each row, tiny, equal, or zero.

    In grids also normal with the largest number at the end of each row and column, subnormal, of a magnitude
    that changes every few elements, five numbers that repeat, -0 alone, or -1 and zeros of both signs, -0
    first; or normal but for the first row, or the first quarter of a vector, or every second number, which
    are equal: a kernel may take these for a sample of all. Or all numbers are alike but one in each row,
    which no sample shows; or large whole numbers, whose sums an int does not hold; or zeros around numbers
    that cancel, so that short sums are zero. Or the first number of each row is huge and negative; or the
    first half is tiny; or the array is a product of vectors along its axes but for a thousandth of each one.
    """
    return Content(shape, _real, ends=(-np.inf, np.inf), move=_exchange)


def scores(*shape: int, large: float) -> Content:
    """Normal numbers; also ``large`` times as large, so that an exponential of them overflows, or equal."""

    def draws(dtype: str) -> Mapping[str, Draw]:
        usual = _real(dtype)
        return {
            NORMAL: usual[NORMAL],
            LARGE: lambda random, shape: usual[NORMAL](random, shape) * large,
            EQUAL: usual[EQUAL],
        }

    return Content(shape, draws, move=_exchange)


def positive(*shape: int) -> Content:
    """Absolute values of ``real`` numbers, and a bit more: what a logarithm or a root takes."""

    def draws(dtype: str) -> Mapping[str, Draw]:
        return {
            name: _bounded(draw, 0.01 * (DTYPES[dtype].scale.tiny if name == TINY else 1.0))
            for name, draw in _real(dtype).items()
            if name not in {ZEROS, NEGATIVE_ZEROS}
        }

    return Content(shape, draws, move=_exchange)


def uniform(low: float, high: float, *shape: int) -> Content:
    """Real numbers between ``low`` and ``high``, which also come as one of the two."""

    def draws(dtype: str) -> Mapping[str, Draw]:
        return {
            NORMAL: _independent(dtype, lambda random, shape: random.uniform(low, high, shape)),
            EQUAL: lambda random, shape: np.full(shape, random.choice([low, high])),
        }

    return Content(shape, draws, ends=(low, high), move=_exchange)


def integers(low: int, high: int, *shape: int) -> Content:
    """Integers from ``low`` to ``high``; also only these two, zeros, or all equal.

    In grids also such that the largest and the smallest are a power of two apart, mostly one of whole bytes,
    or such that those are equal which are in ``real``; or all but one are close to each other.
    """

    def spanning(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        most = max(1, high - low).bit_length() - 1
        drawn = int(random.integers(1, 4) * 8 if random.random() < 0.5 else random.integers(1, 31))
        span = min(1 << min(drawn, most), high - low)
        least = int(random.integers(low, high - span, endpoint=True))
        numbers = random.integers(least, least + span, shape, endpoint=True)
        ends = random.permutation(numbers.size)[:2]
        numbers.flat[ends] = [least + span, least][: ends.size]
        return numbers

    def spike(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        least = int(random.integers(low, max(low, high - 255), endpoint=True))
        numbers = random.integers(least, min(high, least + 255), shape, endpoint=True)
        numbers.flat[random.integers(numbers.size)] = random.integers(low, high, endpoint=True)
        return numbers

    def draws(dtype: str) -> Mapping[str, Draw]:
        usual = _independent(dtype, lambda random, shape: random.integers(low, high, shape, endpoint=True))
        return {
            NORMAL: usual,
            **_partly_alike(usual),
            SPIKE: spike,
            EXTREME: lambda random, shape: random.choice(np.array([low, high]), shape),
            EQUAL: lambda random, shape: np.full(shape, random.integers(low, high, endpoint=True)),
            SPANNING: spanning,
            **({ZEROS: lambda _, shape: np.zeros(shape, np.int64)} if low <= 0 <= high else {}),
        }

    return Content(shape, draws, ends=(low, high), move=_exchange)


def indices(below: int, *shape: int) -> Content:
    """Integers from 0 to ``below`` - 1; also one index for all, on which every thread meets.

    In grids also such that those are equal which are in ``real``.
    """

    def draws(dtype: str) -> Mapping[str, Draw]:
        usual = _independent(dtype, lambda random, shape: random.integers(below, size=shape))
        return {
            NORMAL: usual,
            **_partly_alike(usual),
            REPEATED: lambda random, shape: np.full(shape, random.integers(below)),
        }

    return Content(shape, draws, below, move=_exchange)


def offsets(total: int, count: int) -> Content:
    """The offsets of ``count`` segments in an array of ``total`` elements, then ``total``: rising from 0 on.

    Segments are of random lengths, some of them empty; also all are equally long, or one has all elements. In
    grids several segments may share all of them, or all are equally long but for a few, of which each takes
    some elements of the next one.
    """

    def cut(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        inner = np.sort(random.integers(total, size=count - 1, endpoint=True))
        return np.concatenate([[0], inner, [total]]).reshape(shape)

    def long(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        return np.where(np.arange(count + 1) > random.integers(count), total, 0).reshape(shape)

    def some_long(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        most = max(1, min(count, total))
        number = int(most ** random.random())  # of any magnitude
        lengths = np.zeros(count, np.int64)
        lengths[random.choice(count, number, replace=False)] = np.diff(
            np.arange(number + 1) * total // number
        )
        return np.concatenate([[0], np.cumsum(lengths)]).reshape(shape)

    def even() -> Numbers:
        return np.arange(count + 1) * total // count

    def mostly_even(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        borders = even()
        moved = random.choice(np.arange(1, count), min(count - 1, _FEW), replace=False)
        borders[moved] = random.integers(borders[moved], borders[moved + 1], endpoint=True)
        return borders.reshape(shape)

    def draws(_: str) -> Mapping[str, Draw]:
        return {
            NORMAL: cut,
            SOME_LONG: some_long,
            MOSTLY_EVEN: mostly_even,
            EVEN: lambda _, shape: even().reshape(shape),
            LONG: long,
        }

    return Content((count + 1,), draws, total + 1, move=_move_borders)


def permutation(count: int) -> Content:
    """Every integer from 0 to ``count`` - 1 once, in any order; also ascending or descending."""

    def draws(_: str) -> Mapping[str, Draw]:
        return {
            NORMAL: lambda random, _: random.permutation(count),
            ASCENDING: lambda *_: np.arange(count),
            DESCENDING: lambda *_: np.arange(count)[::-1],
        }

    return Content((count,), draws, count, fixed=True, move=_exchange)


def ascending(content: Content) -> Content:
    """``content`` with the numbers of each row, which is its last axis, in ascending order."""

    def in_order(draw: Draw) -> Draw:
        return lambda random, shape: np.sort(draw(random, shape), -1)

    def draws(dtype: str) -> Mapping[str, Draw]:
        return {name: in_order(draw) for name, draw in content.draws(dtype).items()}

    return replace(content, draws=draws, fixed=True, ends=None, move=None)


def together(draws: Mapping[str, DrawAll], **shapes: tuple[int, ...]) -> dict[str, Content]:
    """Contents of arrays that one function draws at once, such as the parts of a sparse matrix.

    ::

        inputs=lambda n, edges: {
            **together({NORMAL: lambda random: graph(random, n, edges)}, begin=(n + 1,), targets=(edges,)),
            "x": real(n),
        }

    Here ``graph`` returns ``{"begin": ..., "targets": ...}``.

    Args:
        draws: by distribution, ``NORMAL`` among them, from a generator to all arrays by name.
        shapes: of each array; () of a scalar of the launcher, which follows from the arrays.

    Raises:
        FormulaError: there is no usual distribution.
    """
    if NORMAL not in draws:
        raise FormulaError(
            f"together needs a function for the distribution {NORMAL!r}, which is the usual one"
        )
    linked = Linked(draws, shapes)

    def alone(name: str) -> Mapping[str, Draw]:
        def of(distribution: str) -> Draw:
            return lambda random, _: linked.drawn(random, distribution)[name]

        return {distribution: of(distribution) for distribution in draws}

    return {
        name: Content(shape, lambda _, name=name: alone(name), fixed=True, linked=linked)  # type: ignore[misc]
        for name, shape in shapes.items()
    }


def graph(vertices: int, edges: int) -> dict[str, Content]:
    """The arrays ``begin`` and ``targets`` of a directed graph, whose edges may be there twice.

    The edges of vertex v lead to ``targets[begin[v]]`` and so on, up to ``begin[v + 1]``. They are random;
    also vertex 0 begins a path of as many vertices as there may be, which no other edge makes shorter; or all
    edges begin at one vertex.
    """

    def arrays(sources: Numbers, targets: Numbers) -> dict[str, Numbers]:
        counts = np.bincount(sources, minlength=vertices)
        return {
            "begin": np.concatenate([[0], np.cumsum(counts)]),
            "targets": targets[np.argsort(sources, kind="stable")],
        }

    def drawn(random: np.random.Generator) -> dict[str, Numbers]:
        return arrays(random.integers(vertices, size=edges), random.integers(vertices, size=edges))

    def long_path(random: np.random.Generator) -> dict[str, Numbers]:
        order = np.concatenate([[0], 1 + random.permutation(vertices - 1)])
        later = random.integers(vertices, size=edges)
        earlier = random.integers(later, endpoint=True)
        steps = np.arange(min(edges, vertices - 1))
        later[steps], earlier[steps] = steps, steps + 1
        return arrays(order[later], order[earlier])

    def hub(random: np.random.Generator) -> dict[str, Numbers]:
        return arrays(np.full(edges, random.integers(vertices)), random.integers(vertices, size=edges))

    draws = {NORMAL: drawn, LONG_PATH: long_path, HUB: hub}
    return together(draws, begin=(vertices + 1,), targets=(edges,))


def truths(*shape: int) -> Content:
    """Draw true or false; also all true or all false."""

    def draws(_: str) -> Mapping[str, Draw]:
        return {
            NORMAL: lambda random, shape: random.random(shape) < 0.5,
            EQUAL: lambda random, shape: np.full(shape, random.random() < 0.5),
        }

    return Content(shape, draws, move=_exchange)


def mask(*shape: int) -> Content:
    """Draw a mask to add to scores: 0, and also -inf for some elements, but never for the first of a row."""

    def hidden(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = np.where(random.random(shape) < 0.5, -np.inf, 0.0)
        numbers[..., 0] = 0
        return numbers

    def draws(_: str) -> Mapping[str, Draw]:
        return {NORMAL: lambda _, shape: np.zeros(shape), HIDDEN: hidden}

    return Content(shape, draws)


def _independent(dtype: str, draw: Draw) -> Draw:
    """The numbers of ``draw`` in the type ``dtype``, in threads where they are many."""
    return lambda random, shape: side_by_side(random, shape, DTYPES[dtype].storage, draw)


def _real(dtype: str) -> Mapping[str, Draw]:
    scale = DTYPES[dtype].scale

    def normal(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        return standard_normal(random, shape, np.float64 if dtype == "float64" else np.float32)

    def with_one_huge(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = normal(random, shape)
        columns = random.integers(shape[-1], size=(*shape[:-1], 1))
        np.put_along_axis(numbers, columns, scale.huge, axis=-1)
        return numbers

    def largest_last(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = normal(random, shape)
        for axis in reversed(range(len(shape))):
            np.moveaxis(numbers, axis, 0)[-1] = numbers.max(axis) + 1
        return numbers

    def signed(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        behind = np.arange(shape[-1]) > random.integers(shape[-1])
        zeros = np.where(behind, 0.0, -0.0)
        return np.where(random.random(shape) < 0.1, -1.0, zeros)

    def scaled(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        number = min(shape[-1], round(_MOST_RUNS ** random.random()))
        ends = np.sort(random.integers(shape[-1], size=number))
        runs = np.searchsorted(ends, np.arange(shape[-1]), "right")
        most = np.log10(scale.huge)
        decades = random.uniform(-scale.decades, most, (*shape[:-1], ends.size + 1))
        numbers: Numbers = normal(random, shape) * 10.0 ** decades[..., runs]
        return numbers

    def whole(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        most = _WHOLE if scale.huge >= _LARGE else int(scale.huge)
        return random.integers(most, size=shape, endpoint=True).astype(np.float64)

    def far_below(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = normal(random, shape)
        numbers[..., 0] = -min(scale.huge**2, math.sqrt(DTYPES[dtype].largest))
        return numbers

    def tiny_first(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = normal(random, shape)
        numbers.reshape(-1)[: numbers.size // 2] *= scale.tiny
        return numbers

    return {
        NORMAL: normal,
        **_partly_alike(normal),
        LAST: largest_last,
        FAR_BELOW: far_below,
        RANK_ONE: _rank_one,
        TINY_FIRST: tiny_first,
        SPIKE: _spike,
        WHOLE: whole,
        CANCELLING: _cancelling,
        SCALED: scaled,
        OFFSET: lambda random, shape: normal(random, shape) + 100,
        HUGE: with_one_huge,
        TINY: lambda random, shape: normal(random, shape) * scale.tiny,
        EQUAL: lambda random, shape: np.full(shape, random.choice(_DYADIC)),
        ZEROS: lambda _, shape: np.zeros(shape),
        SUBNORMAL: lambda random, shape: normal(random, shape) * scale.subnormal,
        REPEATING: lambda random, shape: random.choice(_DYADIC, shape),
        SIGNED: signed,
        NEGATIVE_ZEROS: lambda _, shape: np.full(shape, -0.0),
    }


def _spike(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    usual, other = random.choice(_DYADIC, 2, replace=False)
    numbers = np.full(shape, usual)
    columns = random.integers(shape[-1], size=(*shape[:-1], 1))
    np.put_along_axis(numbers, columns, other, axis=-1)
    return numbers


def _cancelling(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    numbers = np.zeros(math.prod(shape))
    pairs = numbers[: numbers.size // 4 * 4].reshape(-1, 4)
    pairs[:, 1] = random.choice(_DYADIC, pairs.shape[0])
    pairs[:, 2] = -pairs[:, 1]
    return numbers.reshape(shape)


def _rank_one(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    numbers: Numbers = 1 + random.uniform(-(2.0**-10), 2.0**-10, shape)
    for axis, size in enumerate(shape):
        of_axis = random.uniform(0.5, 1.5, size if len(shape) > 1 else 1)
        numbers *= np.expand_dims(of_axis, [other for other in range(len(shape)) if other != axis])
    return numbers


def _partly_alike(usual: Draw) -> Mapping[str, Draw]:
    """``usual`` numbers of which the first row, or quarter of a vector, is equal, or every second number."""

    def first(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = usual(random, shape)
        numbers[: 1 if len(shape) > 1 else -(-shape[0] // 4)] = numbers.flat[0]
        return numbers

    def second(random: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
        numbers = usual(random, shape)
        numbers.reshape(-1)[int(random.integers(2)) :: 2] = numbers.flat[0]
        return numbers

    return {FIRST_ALIKE: first, SECOND_ALIKE: second}


def _bounded(draw: Draw, least: float) -> Draw:
    return lambda random, shape: np.abs(draw(random, shape)) + least


def _in_float32(draw: Draw) -> Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float32]]:
    return lambda random, shape: draw(random, shape).astype(np.float32, copy=False)


UNSAMPLED: Mapping[str, Callable[[np.random.Generator, tuple[int, ...]], NDArray[np.float32]]] = {
    distribution: _in_float32(_real("float32")[distribution])
    for distribution in (FIRST_ALIKE, SECOND_ALIKE, SPIKE, RANK_ONE)
}
"""What draws real numbers that a kernel which looks at a sample takes for other ones, by distribution.

It is for problems that are written by hand; ``real`` has them for the others.
"""
