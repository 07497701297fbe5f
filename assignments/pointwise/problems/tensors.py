"""What all operators share: tensors with strides, their cases and contents, and exact arithmetic.

An operator computes ``out = f(operands)`` element by element. ``out`` is contiguous; an operand is an array
with strides and an offset, or a number, for which its pointer is null. Element i of operand k is

    operand[offsets[k] + sum over d of i_d strides[k, d]]           strides and offsets in elements

Arithmetic is done in float32 for the types of 16 bits, else in the type itself, and rounded once at the end.
Nothing else rounds, so results are exact: one value, or two where a compiler may contract a product and a sum
into a fused multiply-add. ``multiply_add`` gives both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import cycle
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.problems.distributions import STREAMS, build_case, generator
from grader.problems.dtypes import DTYPES
from grader.problems.grid import MAGNITUDES, with_grid
from grader.problems.problem import (
    ANY_TYPE,
    ArrayParameter,
    Budget,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Range,
    Role,
    ScalarParameter,
    Slices,
    Space,
    StreamParameter,
    several_types,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import torch
    from numpy.typing import NDArray

    Array = NDArray[Any]
    Operands = Mapping[str, Array]
    """Operands and scalars by name, in the type of the arithmetic, as shapes that broadcast."""
    Row = tuple[str, str, tuple[int, ...], str, str]
    """Group, element type, shape, layouts of the operands (repeated in turn) and content of a case."""

TYPES = ("float32", "float16", "bfloat16", "float64", "int32", "int64")
FLOATS = TYPES[:4]
ARITHMETIC: Mapping[str, type[np.generic]] = {
    "float16": np.float32,
    "bfloat16": np.float32,
    "float32": np.float32,
    "float64": np.float64,
    "int32": np.int32,
    "int64": np.int64,
}

CONTIGUOUS, NUMBERS, BROADCAST = "contiguous tensors", "a number and a tensor", "broadcasting"
STRIDES, SMALL, VALUES, MANY = "strides", "empty and small tensors", "special values", "many elements"
GROUPS = (CONTIGUOUS, NUMBERS, BROADCAST, STRIDES, SMALL, VALUES, MANY, *TYPES[1:], STREAMS)
PLAIN, NUMBER, BOTH = "contiguous", "number", "contiguous and contiguous"


@dataclass(frozen=True)
class View:
    """Where the elements of an operand lie: ``length`` counts those of its array."""

    length: int
    strides: tuple[int, ...]
    offset: int


def view(layout: str, shape: tuple[int, ...]) -> View:
    """An operand of this shape.

    Args:
        layout: ``contiguous``, ``windows`` (each row begins with the second element of the one before),
            ``number``, or some of these, joined by " with ": ``transposed`` (the last two dimensions),
            ``reversed`` (all), ``gaps`` (behind each row), ``every second`` (element of a row), ``odd rows``
            (of which every second element is taken, the last one too), ``broadcast D ...`` (dimensions of
            stride 0), ``cut D ...`` (dimensions of stride 0 in a larger array), ``one element`` (all of
            stride 0), ``offset N``. A row lies in memory, so that it is a column of what is transposed.
        shape: of the output.
    """
    if layout == "windows":
        return View(sum(shape) - len(shape) + 1, (1,) * len(shape), 0)
    order, words = list(range(len(shape))), dict(_word(part) for part in layout.split(" with "))
    if "transposed" in words:
        order[-2:] = order[:-3:-1]
    elif "reversed" in words:
        order.reverse()
    skipped = {*words.get("broadcast", ()), *(order if {"one", NUMBER} & words.keys() else ())}
    step, strides, length = 2 if "every" in words else 1, [0] * len(shape), 1
    for dimension in reversed(order):
        if dimension in skipped:
            continue
        if dimension == order[-1]:
            strides[dimension] = step
            length = step * shape[dimension] + 3 * ("gaps" in words) - ("odd" in words)
        else:
            strides[dimension] = length
            length *= shape[dimension]
    for dimension in words.get("cut", ()):
        strides[dimension] = 0
    offset = sum(words.get("offset", ()))
    return View(length + offset, tuple(strides), offset)


def _word(part: str) -> tuple[str, tuple[int, ...]]:
    """The first word of a part of a layout, and the numbers behind it."""
    word, *rest = part.split()
    return word, tuple(int(number) for number in rest if number.isdigit())


def rows(dtype: str) -> list[Row]:
    """The cases of a type beside float32."""
    kinds = (
        ((1000,), BOTH, "usual"),
        ((4099,), BOTH, "usual"),
        ((1024,), "offset 1 and contiguous", "usual"),
        ((1024,), "contiguous and number", "usual"),
        ((77,), "number and contiguous", "usual"),
        ((520,), "contiguous and number", "0.25"),
        ((520,), "number and contiguous", "0.0001"),
        ((24, 40), "broadcast 0 and broadcast 1", "usual"),
        ((5, 17), "contiguous and broadcast 0", "usual"),
        ((32, 48), "transposed and contiguous", "usual"),
        ((2, 3, 4, 5, 6), "reversed and broadcast 1 3", "usual"),
        ((0, 4), BOTH, "usual"),
        ((2000,), BOTH, "special"),
        ((2000,), BOTH, "cancelling"),
    )
    return [(dtype, dtype, *kind) for kind in kinds]


def alone(layout: str, position: int, count: int) -> str:
    """Layouts of ``count`` operands, of which all but the one at ``position`` are contiguous."""
    return " and ".join(layout if position == index else PLAIN for index in range(count))


def drawn_layout(drawn: np.random.Generator, dimensions: int) -> str:
    """A layout that is put together from words, one operand in three contiguous."""
    if drawn.random() < 1 / 3:
        return PLAIN
    words = [str(drawn.choice(["transposed", "reversed", f"offset {drawn.integers(1, 9)}"]))]
    words += [str(drawn.choice(["gaps", "every second", "every second with odd rows"]))]
    words += [f"{drawn.choice(['cut', 'broadcast'])} {drawn.integers(0, dimensions)}"]
    chosen = drawn.random(len(words)) < 0.6
    return " with ".join(word for word, wanted in zip(words, chosen, strict=True) if wanted) or PLAIN


def drawn_rows(drawn: np.random.Generator, dtype: str, group: str, count: int, cases: int) -> list[Row]:
    """Small cases of two to five dimensions in which each of ``count`` operands has a drawn layout."""
    made: list[Row] = []
    for dimensions in drawn.integers(2, 6, cases).tolist():
        shape = tuple(int(size) for size in drawn.integers(2, 40 if dimensions == 2 else 9, dimensions))
        layouts = " and ".join(drawn_layout(drawn, dimensions) for _ in range(count))
        made.append((group, dtype, shape, layouts, "usual"))
    return made


def table(drawn: np.random.Generator, count: int) -> list[Row]:
    """The cases of float32 by their theme, then those of the other types; ``count`` operands."""
    five, odd = (3, 5, 4, 6, 8), tuple(int(size) for size in drawn.integers(2, 9, 5))
    kinds: list[tuple[str, tuple[int, ...], str, str]] = [
        *((CONTIGUOUS, (size,), BOTH, "usual") for size in (1, 3, 4, 5, 31, 1000, 1024, 4099)),
        (CONTIGUOUS, (33, 65), BOTH, "usual"),
        (CONTIGUOUS, odd, BOTH, "usual"),
        *((CONTIGUOUS, (2048,), f"{first} and {other}", "usual") for first, other in _SHIFTED),
        *(
            (NUMBERS, (999,), layouts, "usual")
            for layouts in ("contiguous and number", "number and contiguous")
        ),
        (NUMBERS, (16, 40), "transposed and number", "usual"),
        (NUMBERS, (16, 40), "number and gaps", "usual"),
        (NUMBERS, (1030,), "offset 1 and number", "0.0001"),
        *((BROADCAST, five, f"broadcast {d} and contiguous", "usual") for d in range(5)),
        *((BROADCAST, odd, f"contiguous and broadcast {d}", "usual") for d in range(5)),
        (BROADCAST, five, "broadcast 0 2 and broadcast 1", "usual"),
        (BROADCAST, (64, 96), "broadcast 0 and broadcast 1", "usual"),
        (BROADCAST, (64, 96), "broadcast 1 and contiguous", "usual"),
        (BROADCAST, (640,), "one element and contiguous", "usual"),
        *((STRIDES, shape, layouts, "usual") for shape in ((33, 65), (64, 128)) for layouts in _TURNED),
        *(
            (STRIDES, five, layouts, "usual")
            for layouts in ("reversed and contiguous", "reversed and reversed")
        ),
        (STRIDES, odd[:4], "contiguous and reversed", "usual"),
        *((STRIDES, shape, "gaps and contiguous", "usual") for shape in ((17, 29), (16, 32), (5, 6, 8))),
        *((STRIDES, shape, "contiguous and every second", "usual") for shape in ((300,), (16, 32))),
        (STRIDES, (30, 64), "windows and contiguous", "usual"),
        *(
            (
                STRIDES,
                tuple(int(size) for size in drawn.integers(5, 70, 2)),
                alone(layout, operand, count),
                "usual",
            )
            for layout in _ALONE
            for operand in range(count)
        ),
        *((SMALL, shape, BOTH, "usual") for shape in ((), (0,), (3, 0), (0, 5, 2), (1, 1, 1, 1, 1))),
        (SMALL, (1, 7, 1), "reversed and transposed", "usual"),
        (SMALL, (5, 1), "broadcast 0 and transposed", "usual"),
        (SMALL, (0, 3), "number and contiguous", "usual"),
        *((VALUES, (3000,), BOTH, content) for content in ("special", "cancelling", "tiny")),
        (MANY, (270_001,), BOTH, "usual"),
        (MANY, (70_001, 3), "contiguous and broadcast 1", "usual"),
        (STREAMS, (5000,), BOTH, "usual"),
        (STREAMS, (60, 52), "transposed and contiguous", "usual"),
    ]
    themes = [(group, "float32", shape, layouts, content) for group, shape, layouts, content in kinds]
    further = [
        row
        for dtype in TYPES[1:]
        for row in [*rows(dtype), *drawn_rows(drawn, dtype, dtype, count, _DRAWN_OF_A_TYPE)]
    ]
    strided = drawn_rows(drawn, "float32", STRIDES, count, _DRAWN)
    return sorted([*themes, *strided, *further], key=lambda row: GROUPS.index(row[0]))


_SHIFTED = (("offset 1", PLAIN), (PLAIN, "offset 3"), ("offset 2", "offset 2"), ("offset 1", "offset 2"))
_TURNED = ("transposed and contiguous", "contiguous and transposed", "transposed and transposed")
_ALONE = (
    *("transposed", "transposed with gaps", "gaps", "every second", "every second with odd rows"),
    *("broadcast 0", "broadcast 1", "cut 0", "cut 1", "offset 1"),
)
_DRAWN, _DRAWN_OF_A_TYPE = 24, 4  # cases in which each operand has a layout of its own
_LAYOUTS = (
    *(f"{first} and {other}" for first, other in _SHIFTED),
    "contiguous and number",
    "number and contiguous",
    "broadcast 0 and broadcast 1",
    "contiguous and broadcast 0",
    "broadcast 1 and contiguous",
    "one element and contiguous",
    "gaps and contiguous",
    "contiguous and every second",
    "windows and contiguous",
    "transposed with gaps and contiguous",
    "contiguous and every second with odd rows",
    "cut 1 and contiguous",
)
_OF_MATRICES = ("transposed", "broadcast", "cut", "gaps", "windows", "odd rows")
_TIMED: tuple[Row, ...] = (
    *((PLAIN, dtype, (1 << 24,), BOTH, "usual") for dtype in ("float32", "float16", "bfloat16")),
    *((PLAIN, dtype, (1 << 23,), BOTH, "usual") for dtype in ("float64", "int64")),
    (PLAIN, "int32", (1 << 24,), BOTH, "usual"),
    (PLAIN, "float16", (1 << 24,), "contiguous and number", "usual"),
    (BROADCAST, "float16", (4096, 4096), "contiguous and broadcast 0", "usual"),
)


def cases_of(seed: int, table: Iterable[Row], types: Sequence[str]) -> tuple[Case, ...]:
    """Cases from the rows of ``types``."""
    return tuple(
        case_of(group, dict(_named(shape)), f"{dtype}, {layouts}, {content}", seed)
        for group, dtype, shape, layouts, content in table
        if dtype in types
    )


def _named(shape: Iterable[int]) -> Iterable[tuple[str, int]]:
    return ((f"n{d}", size) for d, size in enumerate(shape))


def case_of(group: str, sizes: Mapping[str, int], distribution: str, seed: int) -> Case:
    """A case; ``distribution`` is an element type, layouts and a content."""
    case = build_case(group, sizes, distribution, seed)
    return replace(case, dtype=distribution.partition(", ")[0])


def flat_or_matrix(group: str, sizes: Mapping[str, int], distribution: str, seed: int) -> Case:
    """A case of two dimensions, or of one where there is only one row."""
    case = case_of(group, sizes, distribution, seed)
    if sizes["n0"] > 1:
        return case
    return replace(case, name=case.name.replace("1 x ", "row of ", 1), sizes={"n1": sizes["n1"]})


def _layouts(sizes: Mapping[str, int], distribution: str) -> bool:
    """A matrix may have any layout, one row only those that are something else than contiguous there."""
    return sizes["n0"] > 1 or not any(word in distribution for word in _OF_MATRICES)


def space(types: Sequence[str]) -> Space:
    """Matrices and vectors in every layout, in the types and contents of the cases."""
    alike = [f"{dtype}, {BOTH}, usual" for dtype in types]
    kinds = [f"{dtype}, {BOTH}, {content}" for dtype in types for content in ("special", "cancelling")]
    kinds += [f"float32, {BOTH}, tiny", *(f"float32, {layouts}, usual" for layouts in (*_TURNED, *_LAYOUTS))]
    return Space(
        ranges={"n0": Range(1, 1 << 24), "n1": Range(1, 1 << 24)},
        distributions=(*alike, *kinds),
        elements=lambda sizes: 3 * sizes["n0"] * sizes["n1"],
        case=flat_or_matrix,
        allows=_layouts,
        alike=tuple(alike),
        budget=Budget(pairs=1 << 15, largest=1 << 18, alone=1 << 18, contents=1 << 15),
    )


def values(random: np.random.Generator, dtype: str, content: str, count: int) -> Array:
    """Contents of an array, in its type."""
    storage = DTYPES[dtype].storage
    if dtype == "bool":
        return random.integers(0, 2, count, dtype=np.uint8)
    if dtype not in FLOATS:
        limits = np.iinfo(DTYPES[dtype].name)
        low, high = (-1000, 1001) if content == "usual" else (limits.min, limits.max)
        return random.integers(low, high, count, dtype=storage)
    numbers = random.standard_normal(count)
    if content == "tiny":
        numbers *= 2.0**-130
    stored: Array = numbers.astype(storage)
    if content == "special":
        strange = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, 3.0e4, 2.0**-24], storage)
        chosen = random.random(count) < 0.5
        stored[chosen] = random.choice(strange, int(chosen.sum()))
    return stored


def number(random: np.random.Generator, dtype: str, content: str) -> int | float:
    """A scalar, in the type of the arithmetic."""
    arithmetic = ARITHMETIC[dtype]
    if dtype not in FLOATS:
        integer: int = values(random, dtype, content, 1)[0].item()
        return integer
    drawn = float(content) if content[0].isdigit() else random.uniform(0.3, 0.9)
    rounded: float = np.asarray(drawn, arithmetic).item()
    return rounded


def multiply_add(factor: Array, other: Array, addend: Array) -> tuple[Array, ...]:
    """``factor * other + addend``, rounded after each operation and, where these are floats, fused.

    A fused one is exact until it is rounded to the type: the exact sum is rounded to odd in float64 first, so
    that the second rounding sees on which side of a midpoint it is. For float64 the product's error comes
    from Dekker's splitting, and the sum of three is that of Boldo and Melquiond (2008).
    """
    twice = factor * other + addend
    if twice.dtype.kind != "f":
        return (twice,)
    p, q, c = (operand.astype(np.float64) for operand in (factor, other, addend))
    product = p * q
    if twice.dtype == np.float64:
        high, low = _two_sum(c, _product_error(p, q, product))
        sum_, rest = _two_sum(product, high)
        once = sum_ + _to_odd(low, rest)
        return twice, np.where(np.isfinite(once), once, twice)
    return twice, _to_odd(product, c).astype(twice.dtype)


def _two_sum(first: Array, second: Array) -> tuple[Array, Array]:
    """The rounded sum and its error (Knuth)."""
    total = first + second
    part = total - first
    return total, (first - (total - part)) + (second - part)


def _to_odd(first: Array, second: Array) -> Array:
    """The sum; where it is no float64, the neighbour of it whose last bit is 1."""
    total, error = _two_sum(first, second)
    even = np.ascontiguousarray(total).view(np.int64) % 2 == 0
    towards = np.nextafter(total, np.copysign(np.inf, error))
    return np.where(even & (error != 0) & np.isfinite(error), towards, total)


def _product_error(p: Array, q: Array, product: Array) -> Array:
    (p_high, p_low), (q_high, q_low) = _halves(p), _halves(q)
    return p_low * q_low - (((product - p_high * q_high) - p_low * q_high) - p_high * q_low)


def _halves(values: Array) -> tuple[Array, Array]:
    """Two numbers of 26 bits that add up to each (Veltkamp)."""
    scaled = values * 134_217_729.0
    high = scaled - (scaled - values)
    return high, values - high


@dataclass(frozen=True)
class Operator:
    """An operator on tensors.

    Attributes:
        id: of the problem; its file and launchers have this name.
        operands: their names in order.
        numbers: which of them may be a number.
        formula: the values that are right, in the type of the arithmetic: one or two for each element.
        pytorch: the same by PyTorch, on operands that are tensors or numbers, and the scalars.
        bugs: wrong formulas by what is wrong in them.
        scalars: the names of further numbers.
        types: of the elements.
        fixed: operands of another type.
    """

    id: str
    operands: tuple[str, ...]
    numbers: tuple[str, ...]
    formula: Callable[[Operands], tuple[Array, ...]]
    pytorch: Callable[[Mapping[str, Any]], object]
    bugs: Mapping[str, Callable[[Operands], Array]]
    scalars: tuple[str, ...] = ()
    types: tuple[str, ...] = TYPES
    fixed: tuple[tuple[str, str], ...] = ()

    @property
    def problem(self) -> KernelProblem:
        """The problem that asks for it."""
        fixed = dict(self.fixed)
        parts = Slices(("out",), lambda case: prod(case.sizes.values()), self.some)
        inputs = space(self.types)
        problem = KernelProblem(
            id=self.id,
            file=f"{self.id}.cu",
            entry_point=f"launch_{self.id}",
            parameters=(
                ArrayParameter("out", Role.OUTPUT, ANY_TYPE),
                *(
                    ArrayParameter(operand, Role.INPUT, fixed.get(operand, ANY_TYPE))
                    for operand in self.operands
                ),
                *(ScalarParameter(f"{operand}_number", ANY_TYPE) for operand in self.numbers),
                *(ScalarParameter(scalar, ANY_TYPE) for scalar in self.scalars),
                ScalarParameter("dimensions", "int"),
                *(ScalarParameter(name, "longs") for name in ("sizes", "strides", "offsets")),
                StreamParameter("stream"),
            ),
            groups=(*(group for group in GROUPS if group not in set(TYPES) - set(self.types)), MAGNITUDES),
            cases=with_grid(
                lambda seed: cases_of(seed, table(generator(seed), len(self.operands)), self.types), inputs
            ),
            timing_cases=lambda seed: cases_of(seed, _TIMED, self.types),
            inputs=self.inputs,
            oracle=self.oracle,
            minimal_bytes=self.minimal_bytes,
            slices=(parts,),
            fused=self.fused,
            space=inputs,
            bugs={text: self._wrong(formula) for text, formula in self.bugs.items()},
        )
        return several_types(problem, self.types)

    def _views(self, case: Case) -> dict[str, tuple[str, View]]:
        """Layout and view of each operand. What cannot be a number is contiguous instead."""
        shape = tuple(case.sizes.values())
        layouts = zip(self.operands, cycle(case.distribution.split(", ")[1].split(" and ")), strict=False)
        return {
            name: (layout, view(layout, shape))
            for name, requested in layouts
            for layout in [PLAIN if requested == NUMBER and name not in self.numbers else requested]
        }

    def inputs(self, case: Case) -> Inputs:
        """The arrays of the operands [length], and numbers, sizes, strides and offsets."""
        random, content = generator(case.seed), case.distribution.rpartition(", ")[2]
        views, shape, fixed = self._views(case), tuple(case.sizes.values()), dict(self.fixed)
        arrays = {
            name: None
            if layout == NUMBER
            else values(random, fixed.get(name, case.dtype), content, strided.length)
            for name, (layout, strided) in views.items()
        }
        scalars = {name: number(random, case.dtype, content) for name in self.scalars}
        if content == "cancelling" and case.dtype in FLOATS:
            self._cancel(arrays, scalars)
        return Inputs(
            arrays=arrays,
            outputs={"out": (*shape, 1)},
            scalars={
                **{f"{name}_number": number(random, case.dtype, content) for name in self.numbers},
                **scalars,
                "dimensions": len(shape),
                "sizes": shape,
                "strides": tuple(stride for _, strided in views.values() for stride in strided.strides),
                "offsets": tuple(strided.offset for _, strided in views.values()),
            },
        )

    def _cancel(self, arrays: dict[str, Array | None], scalars: Mapping[str, float]) -> None:
        """Make ``a`` the rounded ``alpha b`` of either sign: what is left is what rounding has taken."""
        a, b = arrays["a"], arrays["b"]
        assert a is not None
        assert b is not None
        sign = np.where(np.arange(a.size) % 2, 1, -1)
        arrays["a"] = (sign * b.astype(np.float64) * scalars.get("alpha", 1.0)).astype(a.dtype)

    def operand(self, data: Inputs, name: str) -> Array:
        """The elements of an operand as it is in memory, or its number [1]."""
        stored, sizes = data.arrays[name], data.scalars["sizes"]
        if stored is None:
            dtype = next(
                array.dtype for array in data.arrays.values() if array is not None and array.dtype != np.uint8
            )
            return np.array([data.scalars[f"{name}_number"]], ARITHMETIC[str(dtype)])
        index, count = self.operands.index(name), len(sizes)
        strides = data.scalars["strides"][index * count : (index + 1) * count]
        start = stored[data.scalars["offsets"][index] :]
        return np.lib.stride_tricks.as_strided(start, sizes, [step * stored.itemsize for step in strides])

    def operands_of(self, data: Inputs) -> Operands:
        """All operands, and the scalars, in the type of the arithmetic."""
        stored = [
            array.dtype for array in data.arrays.values() if array is not None and array.dtype != np.uint8
        ]
        arithmetic = ARITHMETIC[str(stored[0])]
        arrays = {name: self.operand(data, name).astype(arithmetic) for name in self.operands}
        return arrays | {name: np.array([data.scalars[name]], arithmetic) for name in self.scalars}

    def oracle(self, case: Case, data: Inputs) -> Mapping[str, Expectation]:
        """The values that are right; the last axis of ``out`` makes each element a row of its own."""
        storage, shape = DTYPES[case.dtype].storage, data.outputs["out"]
        with np.errstate(all="ignore"):
            right = [value.astype(storage) for value in self.formula(self.operands_of(data))]
        wide = [value if case.dtype not in FLOATS else value.astype(np.float64) for value in right]
        exact = np.zeros(shape)
        return {"out": Expectation(tuple(Candidate(value.reshape(shape), exact) for value in wide))}

    def some(self, data: Inputs, index: NDArray[np.intp]) -> Inputs:
        """Some elements alone, as contiguous tensors."""
        shape = data.scalars["sizes"]
        chosen = {
            name: None if stored is None else self.operand(data, name)[np.unravel_index(index, shape)]
            for name, stored in data.arrays.items()
        }
        strides = tuple(0 if stored is None else 1 for stored in chosen.values())
        dense = {"dimensions": 1, "sizes": index.shape, "strides": strides, "offsets": (0,) * len(strides)}
        return Inputs(chosen, {"out": (index.size, 1)}, {**data.scalars, **dense})

    def minimal_bytes(self, case: Case) -> int:
        """Every element of the operands that is used, read once; every element of the output written."""
        shape, fixed = tuple(case.sizes.values()), dict(self.fixed)
        read = [
            DTYPES[fixed.get(name, case.dtype)].itemsize
            * prod(size for size, stride in zip(shape, strided.strides, strict=True) if stride)
            for name, (layout, strided) in self._views(case).items()
            if layout != NUMBER
        ]
        return DTYPES[case.dtype].itemsize * prod(shape) + sum(read)

    def fused(self, arrays: Mapping[str, torch.Tensor], scalars: Mapping[str, Any]) -> Callable[[], object]:
        """Return a call of PyTorch's operator on the same views."""
        sizes, count = scalars["sizes"], len(scalars["sizes"])
        operands: dict[str, Any] = {name: scalars[name] for name in self.scalars}
        for index, name in enumerate(self.operands):
            if name in arrays:
                strides = scalars["strides"][index * count : (index + 1) * count]
                operands[name] = arrays[name].as_strided(sizes, strides, scalars["offsets"][index])
            else:
                operands[name] = scalars[f"{name}_number"]
        return lambda: self.pytorch(operands)

    def _wrong(self, formula: Callable[[Operands], Array]) -> Callable[[Inputs], Mapping[str, Array]]:
        def outputs(data: Inputs) -> Mapping[str, Array]:
            stored = next(
                array for array in data.arrays.values() if array is not None and array.dtype != np.uint8
            )
            with np.errstate(all="ignore"):
                wrong = formula(self.operands_of(data)).astype(stored.dtype).astype(np.float64)
            return {"out": np.broadcast_to(wrong, data.scalars["sizes"]).reshape(data.outputs["out"])}

        return outputs
