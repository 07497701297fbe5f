"""What a number in the code has to do with the sizes of a case: a size, a product, or a part of one.

A number that is seen in several cases is compared with all formulas of a family, such as the blocks of 256
threads that rows times columns need. One that explains every case says which sizes make it what it should be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.problem import Space

    Sizes = Mapping[str, int]

MOST_FACTORS = 4
_OFFSETS = (0, -1, 1)
_VARIOUS = 4  # different numbers that one formula explains hardly by chance
_PARTS = (*range(1, 13), 16, 31, 32, 33, 64, 100, 128, 256, 512, 1000, 1024, 4096)
"""What a size of a product is tried with where the others have to be found."""


class Form(Enum):
    """A way to compute a number from a product of sizes and a divisor."""

    WHOLE = "the product"
    CEILING = "divided, rounded up"
    FLOOR = "divided, rounded down"
    REST = "the remainder"
    FILLED = "the multiple from there up"
    CUT = "the multiple from there down"


@dataclass(frozen=True)
class Quantity:
    """A formula: ``form`` of the product of ``sizes`` and ``by``, plus ``offset``."""

    sizes: tuple[str, ...]
    form: Form = Form.WHOLE
    by: int = 1
    offset: int = 0

    def of(self, sizes: Sizes) -> int:
        """The value of this quantity for some sizes."""
        value = math.prod(sizes[name] for name in self.sizes)
        return int(_formed(np.array([value], np.int64), self.form, self.by)[0]) + self.offset

    def products(self, target: int, near: int) -> tuple[int, ...]:
        """Products of the sizes that give ``target``; of a remainder, the one from ``near`` on."""
        value, by = target - self.offset, self.by
        match self.form:
            case Form.WHOLE:
                return (value,)
            case Form.CEILING:
                return (value * by, value * by - by + 1)
            case Form.FLOOR:
                return (value * by + by - 1, value * by)
            case Form.REST:
                return (near + (value - near) % by,) if 0 <= value < by else ()
            case Form.FILLED:
                return (value, value - by + 1) if value % by == 0 else ()
            case Form.CUT:
                return (value + by - 1, value) if value % by == 0 else ()

    def solutions(self, target: int, base: Sizes, space: Space) -> Iterator[dict[str, int]]:
        """Sizes that make it ``target``, most like ``base`` first, the others as they are there."""
        near = math.prod(base[name] for name in self.sizes)
        for total in self.products(target, near):
            if total < 1:
                continue
            for free in self.sizes:
                fixed = [name for name in self.sizes if name != free]
                tried = [tuple(base[name] for name in fixed)]
                tried += product(_PARTS, repeat=len(fixed)) if len(fixed) == 1 else ()
                tried += [(*(1,) * (len(fixed) - 1), part) for part in _PARTS] if len(fixed) > 1 else ()
                for parts in tried:
                    rest = math.prod(parts)
                    if rest == 0:
                        continue
                    sizes = {**base, **dict(zip(fixed, parts, strict=True)), free: total // rest}
                    if total % rest == 0 and all(
                        sizes[name] in limits for name, limits in space.ranges.items()
                    ):
                        yield sizes

    def alike(self, target: int, base: Sizes, space: Space) -> dict[str, int]:
        """Sizes that make it about ``target`` or more, each of them as large as the others."""
        total, sizes = max((1, *self.products(target, 1))), dict(base)
        for count, name in zip(range(len(self.sizes), 0, -1), self.sizes, strict=True):
            sizes[name] = space.ranges[name].nearest(math.ceil(total ** (1 / count)))
            total = -(-total // max(1, sizes[name]))
        return sizes


MOST = 1 << 62  # beyond it a number is no size: a hash, a mask, the bits of another type
_DIVIDED = tuple(form for form in Form if form is not Form.WHOLE)


def _formed(total: NDArray[np.int64], form: Form, by: NDArray[np.int64] | int) -> NDArray[np.int64]:
    match form:
        case Form.WHOLE:
            return total
        case Form.CEILING:
            return -(-total // by)
        case Form.FLOOR:
            return total // by
        case Form.REST:
            return total % by
        case Form.FILLED:
            return -(-total // by) * by
        case Form.CUT:
            return total // by * by


def fitting(samples: Sequence[tuple[Sizes, int]], divisors: Collection[int]) -> tuple[Quantity, ...]:
    """The simplest formulas that give every number in ``samples`` from the sizes beside it, at most four.

    Where all numbers are equal nothing tells what changes them: then they may be a size or a product that is
    equal in all cases, too. Where there are enough different ones, any number may be added to a product:
    compilers make ``n - 30001 < 9999u`` from ``n > 30000 && n < 40000``. None gives a number beyond ``MOST``.
    """
    if not samples or any(abs(value) > MOST for _, value in samples):
        return ()
    names = list(samples[0][0])
    values = np.array([value for _, value in samples], np.int64)
    equal = len(set(values.tolist())) == 1
    offsets = (0,) if equal else _OFFSETS
    various = len(set(values.tolist())) >= _VARIOUS
    by = np.array([divisor for divisor in divisors if divisor > 1], np.int64)
    probe = int(values.argmax())  # where formulas differ most
    quantities: list[Quantity] = []
    columns = {name: np.array([sizes[name] for sizes, _ in samples], np.int64) for name in names}
    changing = [name for name in names if equal or len(set(columns[name].tolist())) > 1]
    for count in range(1, min(3, len(changing)) + 1):
        for group in combinations(changing, count):
            total = np.prod([columns[name] for name in group], axis=0)
            offset = int(values[probe] - total[probe])
            if (offset in offsets or various) and (total + offset == values).all():
                quantities.append(Quantity(group, offset=offset))
            if equal:
                continue
            for form in _DIVIDED:
                formed = _formed(total[probe : probe + 1], form, by)
                for divisor in by[np.abs(values[probe] - formed) <= 1].tolist():
                    every = _formed(total, form, divisor)
                    offset = int(values[probe] - every[probe])
                    if (every + offset == values).all():
                        quantities.append(Quantity(group, form, divisor, offset))
    quantities.sort(
        key=lambda quantity: (
            quantity.form is not Form.WHOLE,
            len(quantity.sizes),
            abs(quantity.offset),
            quantity.by,
        )
    )
    return tuple(quantities[:MOST_FACTORS])
