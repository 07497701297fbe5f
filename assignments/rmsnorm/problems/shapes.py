"""What forward and backward share: element types, sizes, contents, and the exact statistics of rows.

The reciprocal root of a row, with epsilon as the float that launchers get:

    q = mean(x^2),   r = 1 / sqrt(q + epsilon),   n = x r

Bounds, from the pieces of ``grader.problems.bounds``, with n = hidden and u the rounding unit of float32:
    dq  = sum_error(x^2) / hidden + u q
    rho = 1 / sqrt(1 - d) - 1 + u QUOTIENT  with  d = dq / (q + epsilon) + u,  relative, of r
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.contents import UNSAMPLED
from grader.problems.distributions import STREAMS, build_case, normal, with_one_huge
from grader.problems.dtypes import DTYPES
from grader.problems.problem import Range, Space

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Case

    Array = NDArray[np.float64]
    Row = tuple[str, str, int, int, str]
    """Group, element type, rows, hidden size and distribution of a case."""

TYPES = ("float32", "float16", "bfloat16")
EPSILON = float(np.float32(1e-6))
MOST_HIDDEN = 16_384
UNIT = bounds.PRECISIONS["float32"].unit

SMALL, BORDER, LARGE = "small hidden sizes", "hidden sizes around a border", "large hidden sizes"
VALUES, MANY = "large and small numbers", "many rows"
CANCELLING = "large gradients that cancel"
"""Pairs of equal rows have opposite gradients: terms of a sum are larger than a type of 16 bits holds."""
GROUPS = (SMALL, BORDER, LARGE, VALUES, MANY, *TYPES[1:], STREAMS)


def cases_of(seed: int, table: Iterable[Row]) -> tuple[Case, ...]:
    """Cases from rows of the table, each with a seed of its own."""
    return tuple(
        case_of(group, {"rows": rows, "hidden": hidden}, f"{dtype}, {content}", seed)
        for group, dtype, rows, hidden, content in table
    )


def case_of(group: str, sizes: Mapping[str, int], distribution: str, seed: int) -> Case:
    """A case; ``distribution`` is an element type and a content."""
    dtype, _, content = distribution.partition(", ")
    return replace(build_case(group, sizes, distribution, seed), distribution=content, dtype=dtype)


def space(cases: Iterable[Case], arrays: int) -> Space:
    """The sizes that inputs may have, in the types and contents of ``cases``.

    ``arrays`` is the number of arrays of shape [rows, hidden].
    """
    return Space(
        ranges={"rows": Range(1, 1 << 21), "hidden": Range(1, MOST_HIDDEN)},
        distributions=(
            *dict.fromkeys(f"{case.dtype}, {case.distribution}" for case in cases),
            *(f"float32, {name}" for name in UNSAMPLED),
        ),
        elements=lambda sizes: arrays * sizes["rows"] * max(8, sizes["hidden"]),
        case=case_of,
        alike=tuple(f"{dtype}, normal" for dtype in TYPES),
    )


def hidden_sizes(draw: np.random.Generator) -> tuple[int, ...]:
    """A small, a large and a middle hidden size."""
    return tuple(int(draw.integers(*limits)) for limits in ((9, 31), (4200, 8000), (2050, 4090)))


def graded(
    seed: int, drawn: tuple[int, ...], further: Iterable[Row], *, few: int, some: int
) -> tuple[Case, ...]:
    """The cases that both problems have, and the ``further`` rows of a problem, group by group.

    Args:
        seed: of the contents.
        drawn: the hidden sizes that ``hidden_sizes`` gave.
        further: further rows of the table.
        few: how many rows of the small size that was drawn.
        some: how many rows of the sizes around a border.
    """
    small, large, odd = drawn
    borders = (31, 32, 33, 127, 128, 129, 255, 256, 257, 1000, 1023, 1024, 1025)
    table = [
        (SMALL, "float32", 5, 1, "normal"),
        (SMALL, "float32", 5, 2, "normal"),
        (SMALL, "float32", 7, 3, "normal"),
        (SMALL, "float32", few, small, "normal"),
        *((BORDER, "float32", some, hidden, "normal") for hidden in borders),
        *((LARGE, "float32", 3, hidden, "normal") for hidden in (large, 4096, 4097, 8192)),
        *((LARGE, "float32", 2, hidden, "normal") for hidden in (MOST_HIDDEN - 1, MOST_HIDDEN)),
        (VALUES, "float32", 5, 300, "numbers of 1e15"),
        (VALUES, "float32", 5, 100, "numbers of 1e-3"),
        (VALUES, "float32", 6, 500, "one huge element"),
        (VALUES, "float32", 6, 260, "rows of zeros"),
        (MANY, "float32", 4099, 129, "normal"),
        (MANY, "float32", 1_050_011, 4, "normal"),
        *(row for dtype in TYPES[1:] for row in half_shapes(dtype, odd)),
        (STREAMS, "float32", 33, 70, "normal"),
        (STREAMS, "bfloat16", 4, 4096, "normal"),
        *further,
    ]
    return cases_of(seed, sorted(table, key=lambda row: GROUPS.index(row[0])))


def half_shapes(dtype: str, odd: int) -> list[Row]:
    """The rows of the group of a type of 16 bits: sizes on both sides of a pack of 8, and contents."""
    shapes = ((5, 1), (5, 7), (5, 8), (9, 100), (3, odd), (3, 4096), (2, MOST_HIDDEN), (2100, 264))
    return [
        *((dtype, dtype, rows, hidden, "normal") for rows, hidden in shapes),
        (dtype, dtype, 5, 1000, "numbers of 300"),
        (dtype, dtype, 5, 520, "numbers of 1e-3"),
        (dtype, dtype, 6, 200, "rows of zeros"),
    ]


def content(random: np.random.Generator, case: Case) -> NDArray[np.float32]:
    """X [rows, hidden], before it is rounded to the case's type."""
    shape = (case.sizes["rows"], case.sizes["hidden"])
    scale = {
        "numbers of 300": 300.0,
        "numbers of 1e15": 1e15,
        "numbers of 1e-3": 1e-3,
        "numbers of 1e-25": 1e-25,
        CANCELLING: 4.0,  # gradients of x, which are smaller by this, fit into the type
    }.get(case.distribution, 1.0)
    if case.distribution in UNSAMPLED:
        return UNSAMPLED[case.distribution](random, shape)
    x = normal(random, shape, scale)
    if case.distribution == "rows of zeros":
        x[::2] = 0
    if case.distribution == CANCELLING:
        x[1::2] = x[: len(x) // 2 * 2 : 2]
    if case.distribution == "one huge element":
        x = with_one_huge(random, x, 30_000)
    return x


def stored(values: NDArray[np.float32], case: Case) -> NDArray[np.generic]:
    """``values`` as the case's type holds them."""
    return values.astype(DTYPES[case.dtype].storage)


def weights(random: np.random.Generator, case: Case) -> NDArray[np.generic]:
    """The weights [hidden] in the case's type, most of them around 1."""
    return stored(normal(random, (case.sizes["hidden"],), 0.5, 1.0), case)


@dataclass(frozen=True)
class Roots:
    """The exact reciprocal root of each row [rows, 1], and the relative error of a right one."""

    exact: Array
    relative: Array


def roots(x: Array) -> Roots:
    """1 / sqrt(mean(x^2) + epsilon) of the rows of ``x`` [rows, hidden], with its relative error."""
    square = (x * x).mean(axis=1, keepdims=True)
    error = bounds.sum_error(x * x, 1, 1.0, UNIT) / x.shape[1] + UNIT * square
    share = error / (square + EPSILON) + UNIT
    return Roots(1 / np.sqrt(square + EPSILON), 1 / np.sqrt(1 - share) - 1 + UNIT * bounds.QUOTIENT)


def exact_roots(x: NDArray[np.generic], epsilon: float = EPSILON) -> Array:
    """The exact reciprocal roots [rows] alone, without an array of ``x`` in float64."""
    narrow = x.astype(np.float32, copy=False)
    square = np.einsum("ij,ij->i", narrow, narrow, dtype=np.float64) / x.shape[1]
    return np.asarray(1 / np.sqrt(square + epsilon))


def timing_cases(seed: int) -> tuple[Case, ...]:
    """Rows as long as those of a model of 8 billion parameters, of as many tokens as are published."""
    table = [
        ("few tokens", "bfloat16", 256, 4096, "normal"),
        ("few tokens", "bfloat16", 1024, 4096, "normal"),
        ("many tokens", "bfloat16", 4096, 4096, "normal"),
        ("many tokens", "bfloat16", 16_384, 4096, "normal"),
        ("many tokens", "float32", 8192, 4096, "normal"),
    ]
    return cases_of(seed, table)
