"""The grid of magnitudes: cases in which every size of a problem meets every other one in every octave.

An octave is what lies between two powers of two: 1, 2 to 3, 4 to 7, and so on. Kernels change their plan at
some size (a tile, the largest extent of a grid, the last value of a counter), and often only where a second
size is large as well. A list of sizes by hand leaves gaps between its members, and a covering array leaves
none: for each two sizes, and each pair of their octaves that ``Budget.pairs`` allows, there is a case. It is
built greedily (Cohen, Dalal, Fredman and Patton 1997): each further case is the one of a few drawn ones that
meets the most pairs that are still missing. Sizes are drawn anew in their octaves from the seed of a run.

Each size also comes alone in every octave that ``Budget.alone`` allows: as an odd and an even number and at
a border of the octave; and each distribution of contents comes with few, some and many elements, and with
sizes that are multiples of each other.

Layer: imports numpy, contents and the problem's shape.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.contents import EQUAL, LAST, REPEATED
from grader.problems.problem import Range, fitted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from grader.problems.problem import Case, Space

    Sizes = Mapping[str, int]
    Level = tuple[str, int]
    """A size, or a product of sizes, by name, and an octave of it."""
    Pair = tuple[Level, ...]
    """Two sizes with their octaves, in the order of ``factors``; or one with its octave."""

MAGNITUDES = "sizes of every magnitude"
"""The group of these cases."""

FREE = 1 << 14  # elements that a case may have at any rate, so that one case meets many pairs
MIDDLE, FEW = 1 << 10, 1 << 5  # elements of the smaller cases of each distribution
FEW_VALUES = 4  # of a size that is more of a choice, so that each distribution meets each of them
DRAWN = 6  # sizes, of which those that meet the most pairs are taken
MANY = 16  # values of an octave, so that its lowest quarter has some that are odd
OTHERS = 2  # distributions beside the usual one that come near the ends of ranges
PAIRS_ON_GPU = 6  # pairs of octaves that a GPU meets in a run, half of them among the largest
LARGEST = 1 << 3  # how many times fewer elements than the largest inputs these have at most
ALIKE = frozenset({EQUAL, REPEATED})  # always among these: counters and sums get largest where all is alike
REORDERED = range(13, 16)  # octaves of elements of which a case runs in every order of execution
TRIES = 40  # to draw sizes of so many elements, or such a product
SEEDS_KEPT = 8  # of which the cases are remembered


def octave(value: int) -> int:
    """The number of binary digits of a size: 1 for 1, 2 for 2 and 3, 3 for 4 to 7."""
    return value.bit_length()


def in_octave(limits: Range, number: int) -> range:
    """The values of a range in an octave."""
    step = limits.multiple_of
    lowest, highest = (1 << number) >> 1, (1 << number) - 1
    first = -(-max(lowest, limits.low) // step) * step
    return range(first, min(highest, limits.high) + 1, step)


def factors(space: Space) -> Mapping[str, Range]:
    """The sizes of a problem, and the products that kernels treat as sizes."""
    products = {
        name: Range(*(prod(limits) for limits in zip(*_limits(space, parts), strict=True)))
        for name, parts in space.products.items()
    }
    return {**space.ranges, **products}


def _limits(space: Space, parts: Iterable[str]) -> list[tuple[int, int]]:
    return [(space.ranges[part].low, space.ranges[part].high) for part in parts]


def values(space: Space, sizes: Sizes) -> Mapping[str, int]:
    """The sizes and their products."""
    return {**sizes, **{name: prod(sizes[part] for part in parts) for name, parts in space.products.items()}}


def met(space: Space, sizes: Sizes) -> frozenset[Pair]:
    """The octaves, and pairs of octaves, that inputs of these sizes are in."""
    levels = [(name, octave(value)) for name, value in values(space, sizes).items()]
    return frozenset([*combinations(levels, 2), *((level,) for level in levels)])


def required(space: Space) -> Mapping[Pair, int]:
    """Every pair of octaves that the budget allows, with the fewest elements that inputs in it have.

    Of a problem with one size, every octave. A product makes no pair with its own parts.
    """
    names, corners, budget = list(factors(space)), _Corners(space), space.budget
    if len(names) == 1:
        return corners.within([(names[0],)], budget.pairs)
    parts = {part for parts in space.products.values() for part in parts}
    pairs = _pairs(space)
    loose = [pair for pair in pairs if not parts & set(pair)]
    bound = [pair for pair in pairs if parts & set(pair)]
    return {
        **corners.largest(loose, budget.largest),
        **corners.within(loose, budget.pairs),
        **corners.within(bound, budget.parts),
    }


def _pairs(space: Space) -> list[tuple[str, str]]:
    """All pairs of sizes and products, but for a product and a part of it."""
    parts = space.products
    return [
        (first, second)
        for first, second in combinations(factors(space), 2)
        if first not in parts.get(second, ()) and second not in parts.get(first, ())
    ]


def alone(space: Space) -> Mapping[Pair, int]:
    """Every octave of each size and product that the budget allows, with the fewest elements."""
    return _Corners(space).within([(name,) for name in factors(space)], space.budget.alone)


class _Corners:
    """The smallest inputs in given octaves."""

    def __init__(self, space: Space) -> None:
        self._space = space
        self.octaves = {
            name: [number for number in range(octave(limits.high) + 1) if in_octave(limits, number)]
            for name, limits in factors(space).items()
        }
        self._elements: dict[tuple[int, ...], int] = {}

    def elements(self, sizes: Sizes) -> int:
        """The number of elements of all arrays together, for some sizes; each is computed once."""
        key = tuple(sizes.values())
        if key not in self._elements:
            self._elements[key] = self._space.elements(sizes)
        return self._elements[key]

    def sizes(self, pair: Pair) -> dict[str, int]:
        """Sizes in the octaves of a pair; of a product, the parts with the widest ranges are large."""
        ranges, sizes = self._space.ranges, dict(self._space.least)
        for name, number in pair:
            quotient = (1 << number) >> 1
            for part in sorted(self._space.products.get(name, ()), key=lambda part: -ranges[part].high):
                sizes[part] = ranges[part].nearest(min(quotient, 1 << octave(ranges[part].high) >> 1))
                quotient = -(-quotient // sizes[part])
            if name in ranges:
                sizes[name] = in_octave(ranges[name], number)[0]
        return fitted(ranges, sizes, self._kept(pair))

    def _kept(self, pair: Pair) -> set[str]:
        """The sizes that are in octaves of a pair."""
        return {part for name, _ in pair for part in (name, *self._space.products.get(name, ()))}

    def _meets(self, sizes: Sizes, pair: Pair) -> bool:
        """Whether ``sizes`` are in the octaves of a pair: of two sizes, one may have to be the smaller."""
        return all(octave(sizes[name]) == number for name, number in pair if name in self._space.ranges)

    def within(self, groups: Sequence[tuple[str, ...]], most: int) -> Mapping[Pair, int]:
        """The octaves of each group of one or two sizes, where inputs may have ``most`` elements."""
        allowed: dict[Pair, int] = {}
        for first, *rest in groups:
            for level in ((first, number) for number in self.octaves[first]):
                levels = [(name, number) for name in rest for number in self.octaves[name]]
                together: list[Pair] = [(level, other) for other in levels]
                for pair in together or [(level,)]:
                    sizes = self.sizes(pair)
                    elements = self.elements(sizes)
                    if elements > most:
                        break
                    if self._meets(sizes, pair):
                        allowed[pair] = elements
        return allowed

    def largest(self, pairs: Sequence[tuple[str, str]], most: int) -> Mapping[Pair, int]:
        """The pairs of ``within`` in which neither size can be an octave larger."""
        allowed = self.within(pairs, most)

        def higher(pair: Pair) -> Iterator[Pair]:
            for index, (name, number) in enumerate(pair):
                above = [other for other in self.octaves[name] if other > number][:1]
                yield from ((*pair[:index], (name, other), *pair[index + 1 :]) for other in above)

        return {pair: allowed[pair] for pair in allowed if allowed.keys().isdisjoint(higher(pair))}


class _Grid:
    """Draws the sizes of a grid; every number follows from the seed."""

    def __init__(self, space: Space, seed: int) -> None:
        self._space, self._budget = space, space.budget
        self._corners = _Corners(space)
        self._random = np.random.default_rng((seed, len(MAGNITUDES)))
        self._uses: Counter[Level] = Counter()

    @property
    def _alike(self) -> tuple[str, ...]:
        return self._space.alike or self._space.distributions[:1]

    def points(self) -> Iterator[tuple[Sizes, str]]:
        """Sizes and distribution of each case: for the pairs, for the octaves, for the distributions."""
        alike = self._alike
        for number, sizes in enumerate((*self._of_pairs(), *self._of_octaves())):
            turned = (*alike[number % len(alike) :], *alike)
            yield sizes, next(name for name in turned if self._space.allows(sizes, name))
        for name in self._space.distributions:
            most_elements = self._budget.contents
            for most in dict.fromkeys((most_elements, min(MIDDLE, most_elements), min(FEW, most_elements))):
                if (having := self._of_elements(most, name)) is not None:
                    yield having, name
            yield from ((sizes, name) for sizes in self._in_step() if self._space.allows(sizes, name))

    def beyond_simulator(self) -> Iterator[tuple[Sizes, str]]:
        """Sizes and distributions of what a GPU alone can run: ends of ranges, octaves, pairs of octaves."""
        if self._corners.elements(self._space.least) > self._budget.on_gpu:
            return
        yield from self._ends()
        turned = self._shuffled(self._space.distributions)
        for number, sizes in enumerate((*self._octaves_on_gpu(), *self._pairs_on_gpu())):
            names = (*turned[number % len(turned) :], *turned)
            yield sizes, next(name for name in names if self._space.allows(sizes, name))

    def _ends(self) -> Iterator[tuple[Sizes, str]]:
        *_, decisive = self._alike
        others = [name for name in self._space.distributions if name not in self._alike]
        for name in factors(self._space):
            drawn = sorted(self._shuffled(others), key=lambda distribution: distribution not in ALIKE)
            for distribution in (decisive, *drawn[:OTHERS]):
                end = self._near_end(name, last=distribution in {*ALIKE, LAST})
                sizes = fitted(self._space.ranges, {**self._space.least, **end}, end.keys())
                beyond = self._corners.elements(sizes) > self._budget.alone
                if beyond and self._space.allows(sizes, distribution):
                    yield sizes, distribution

    def _octaves_on_gpu(self) -> list[Sizes]:
        budget = self._budget
        reached = self._corners.within([(name,) for name in factors(self._space)], budget.on_gpu // 2)
        beyond = [level for level, elements in reached.items() if elements > budget.alone]
        return [self._drawn(level, budget.on_gpu // 4) for level in beyond]

    def _pairs_on_gpu(self) -> list[Sizes]:
        """Sizes in a few pairs of octaves: there are too many of them to meet each in every run."""
        budget = self._budget
        reached = self._corners.within(_pairs(self._space), budget.on_gpu // 2)
        beyond = {pair: count for pair, count in reached.items() if count > max(budget.pairs, budget.largest)}
        most = max(beyond.values(), default=0)
        largest = [pair for pair, count in beyond.items() if count * LARGEST >= most]
        chosen = self._taken(largest, PAIRS_ON_GPU // 2)
        chosen += self._taken([pair for pair in beyond if pair not in chosen], PAIRS_ON_GPU // 2)
        return [self._drawn(pair, budget.on_gpu // 4) for pair in chosen]

    def _taken(self, pairs: Sequence[Pair], count: int) -> list[Pair]:
        return [pairs[index] for index in self._random.permutation(len(pairs))[:count]]

    def _near_end(self, name: str, *, last: bool) -> Sizes:
        """A size in the last quarter of what the budget of a GPU allows, or the last one itself.

        Of a product, parts in an octave.
        """
        space = self._space
        if name not in space.ranges:
            *_, ((_, number),) = self._corners.within([(name,)], self._budget.on_gpu)
            return self._parts(name, number)
        limits = space.ranges[name]
        inside = limits.values
        count = bisect_right(
            inside, self._budget.on_gpu, key=lambda size: self._corners.elements({**space.least, name: size})
        )
        return {name: inside[count - 1 if last else int(self._random.integers(count * 3 // 4, count))]}

    def _of_pairs(self) -> list[Sizes]:
        """Sizes that meet every pair; the pairs with the most elements first, as these have least company."""
        chosen: list[Sizes] = []
        pairs = required(self._space)
        missing = set(pairs)
        order = dict(zip(pairs, self._random.permutation(len(pairs)), strict=True))
        for pair in sorted(pairs, key=lambda pair: (-pairs[pair], order[pair])):
            if pair in missing:
                drawn = [self._drawn(pair, self._budget.pairs) for _ in range(DRAWN)]
                best = max(drawn, key=lambda sizes: len(met(self._space, sizes) & missing))
                missing -= met(self._space, best)
                chosen.append(self._used(best))
        return chosen

    def _of_octaves(self) -> Iterator[Sizes]:
        """Sizes that bring each octave as often as there are kinds of values in it, large ones once."""
        for (level,), elements in alone(self._space).items():
            times = len(_KINDS) if elements <= self._budget.pairs else 1
            for _ in range(times - self._uses[level]):
                yield self._used(self._drawn((level,), self._budget.pairs))

    def _used(self, sizes: Sizes) -> Sizes:
        self._uses.update((name, octave(value)) for name, value in values(self._space, sizes).items())
        return sizes

    def _drawn(self, pair: Pair, whole: int) -> Sizes:
        """Sizes in these octaves; others are above their least where that costs little.

        They are from whole octaves up to about ``whole`` elements, and beyond from where octaves begin.
        """
        space, sizes = self._space, self._corners.sizes(pair)
        most = max(min(FREE, self._budget.pairs), self._corners.elements(sizes) * 5 // 4)
        large = self._corners.elements(sizes) > whole
        for name, number in pair:
            if name in space.ranges:
                sizes[name] = self._value(name, number, inner=large)
            else:
                sizes |= self._parts(name, number)
        taken = {part for name, _ in pair for part in (name, *space.products.get(name, ()))}
        for name in self._shuffled([name for name in space.ranges if name not in taken]):
            sizes[name] = self._value(name, self._pick(self._possible(sizes, name, most)))
        return fitted(space.ranges, sizes, taken)

    def _possible(self, sizes: Sizes, name: str, most: int) -> list[int]:
        """The octaves of a size that keep the inputs within so many elements; at least the lowest one."""
        limits, octaves = self._space.ranges[name], self._corners.octaves[name]
        above = sizes[limits.at_most] if limits.at_most else limits.last
        return [
            number
            for number in octaves
            if number == octaves[0]
            or (
                in_octave(limits, number)[0] <= above
                and self._corners.elements({**sizes, name: in_octave(limits, number)[0]}) <= most
            )
        ]

    def _parts(self, product: str, number: int) -> dict[str, int]:
        """Sizes whose product is in an octave."""
        lowest, highest = (1 << number) >> 1, (1 << number) - 1
        for _ in range(TRIES):
            *first, last = self._shuffled(self._space.products[product])
            sizes: dict[str, int] = {}
            for name in first:
                limit = octave(highest // prod(sizes.values()))
                fitting = [candidate for candidate in self._corners.octaves[name] if candidate <= limit]
                sizes[name] = self._value(name, self._pick(fitting))
            product_so_far, limits = prod(sizes.values()), self._space.ranges[last]
            low, high = (
                max(limits.low, -(-lowest // product_so_far)),
                min(limits.high, highest // product_so_far),
            )
            step = limits.multiple_of
            if inside := range(-(-low // step) * step, high + 1, step):
                return {**sizes, last: inside[int(self._random.integers(len(inside)))]}
        return {
            part: self._corners.sizes(((product, number),))[part] for part in self._space.products[product]
        }

    def _value(self, name: str, number: int, *, inner: bool = False) -> int:
        """A value in an octave, of the kind whose turn it is there; an ``inner`` one low in it."""
        inside = in_octave(self._space.ranges[name], number)
        if inner and len(inside) > MANY:
            return inside[_odd(self._random, inside[1 : len(inside) // 4])]
        return inside[_KINDS[self._uses[name, number] % len(_KINDS)](self._random, inside)]

    def _of_elements(self, most: int, distribution: str) -> Sizes | None:
        """Sizes of about ``most`` elements that may have a distribution; None if none were drawn."""
        for _ in range(TRIES):
            sizes = dict(self._space.least)
            *first, last = self._shuffled(self._space.ranges)
            for name in first:
                sizes[name] = self._value(name, self._pick(self._possible(sizes, name, most)))
            sizes[last] = self._value(last, self._possible(sizes, last, most)[-1])
            sizes = fitted(self._space.ranges, sizes)
            if self._space.allows(sizes, distribution):
                return self._used(sizes)
        return None

    def _in_step(self) -> Iterator[Sizes]:
        """Sizes of about ``MIDDLE`` elements that are multiples of each other, and all above their least.

        They come once with each value of each size that has ``FEW_VALUES`` or fewer, such as a radius.
        """
        ranges = self._space.ranges
        few = [
            {name: value}
            for name, limits in ranges.items()
            if len(limits.values) <= FEW_VALUES
            for value in limits.values
        ]
        for chosen in few or [{}]:
            yield fitted(ranges, self._multiples(self._grown(chosen), chosen), chosen)

    def _grown(self, chosen: Sizes) -> dict[str, int]:
        """The ``chosen`` sizes, and the others after random ones of them have grown by octaves in turn."""
        sizes, most = {**self._space.least, **chosen}, min(MIDDLE, self._budget.contents)
        growing = [name for name in sizes if name not in chosen]
        while growing:
            name = self._shuffled(growing)[0]
            larger = dict(sizes)
            for number in [above for above in self._corners.octaves[name] if above > octave(sizes[name])][:1]:
                larger[name] = self._value(name, number)
            fits = larger[name] <= larger.get(self._space.ranges[name].at_most, larger[name])
            if larger != sizes and fits and self._corners.elements(larger) <= most:
                sizes = larger
            else:
                growing.remove(name)
        return sizes

    def _multiples(self, sizes: Sizes, kept: Collection[str]) -> dict[str, int]:
        """``sizes``, each lowered to a multiple of the next smaller one.

        Those ``kept`` stay as they are, and those that may not be larger than another one.
        """
        lowered = dict(sizes)
        smaller = 1
        free = [name for name in sizes if name not in kept and not self._space.ranges[name].at_most]
        for name in sorted(free, key=lambda name: sizes[name]):
            multiple = sizes[name] // smaller * smaller
            if multiple in self._space.ranges[name]:
                lowered[name] = multiple
            smaller = max(1, lowered[name])
        return lowered

    def _pick(self, numbers: Sequence[int]) -> int:
        return numbers[int(self._random.integers(len(numbers)))]

    def _shuffled(self, names: Iterable[str]) -> list[str]:
        listed = list(names)
        return [listed[index] for index in self._random.permutation(len(listed))]


def _odd(random: np.random.Generator, inside: range) -> int:
    """The place of a value that is odd, as a multiple of what the range counts in."""
    return _of_parity(random, inside, 1)


def _even(random: np.random.Generator, inside: range) -> int:
    return _of_parity(random, inside, 0)


def _of_parity(random: np.random.Generator, inside: range, parity: int) -> int:
    begin = (inside[0] // inside.step + parity) % 2
    count = (len(inside) - begin + 1) // 2
    return begin + 2 * int(random.integers(count)) if count else 0


def _border(random: np.random.Generator, inside: range) -> int:
    """The place of a power of two, of the value behind it, or of the last value in front of the next one."""
    return (0, min(1, len(inside) - 1), len(inside) - 1)[int(random.integers(3))]


_KINDS = (_odd, _border, _even)
"""What the values of an octave are in turn."""


def grid(space: Space, seed: int) -> tuple[Case, ...]:
    """The cases of the grid.

    They run in program order alone, but for one of many elements in each of the octaves ``REORDERED``:
    blocks that wait for each other go wrong in other orders where there are many of them.
    """
    cases = _cases(space, _Grid(space, seed).points(), seed)
    first = {octave(space.elements({**space.least, **case.sizes})): case.name for case in reversed(cases)}
    names = {first[number] for number in REORDERED if number in first}
    return tuple(replace(case, orders=None) if case.name in names else case for case in cases)


def beyond_simulator(space: Space, seed: int) -> tuple[Case, ...]:
    """Cases for a GPU, of up to about ``Budget.on_gpu`` elements, where the grid does not get as far.

    Each size and product comes near the end of its range, or of what the budget allows, in the last of
    ``Space.alike`` and in ``OTHERS`` drawn contents, those of ``ALIKE`` first and at the end; it comes in
    every octave before that; and ``PAIRS_ON_GPU`` pairs of octaves come that are drawn from the seed.
    """
    return _cases(space, _Grid(space, seed).beyond_simulator(), seed)


def _cases(space: Space, points: Iterable[tuple[Sizes, str]], seed: int) -> tuple[Case, ...]:
    """A case of each size and distribution, without those of the same name."""
    cases = (
        replace(
            space.case(MAGNITUDES, sizes, distribution, seed),
            orders=1,
            at_places=space.elements(sizes) > space.budget.compared,
        )
        for sizes, distribution in points
    )
    return tuple({case.name: case for case in cases}.values())


def missing(space: Space, cases: Iterable[Case]) -> list[Pair]:
    """The required pairs that no case is in. Cases of other sizes than the space's count for none.

    A size that a case of the grid does not name is at its least.
    """
    covered: set[Pair] = set()
    for case in cases:
        if case.group == MAGNITUDES or case.sizes.keys() == space.ranges.keys():
            covered |= met(space, {name: case.sizes.get(name, least) for name, least in space.least.items()})
    return [pair for pair in required(space) if pair not in covered]


def with_grid(cases: Callable[[int], tuple[Case, ...]], space: Space) -> Callable[[int], tuple[Case, ...]]:
    """``cases`` with those of the grid behind them, in the group ``MAGNITUDES``."""

    @lru_cache(SEEDS_KEPT)
    def both(seed: int) -> tuple[Case, ...]:
        before = cases(seed)
        names = {case.name for case in before}
        return (*before, *(case for case in grid(space, seed) if case.name not in names))

    return both
