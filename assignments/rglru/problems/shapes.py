"""What the three problems share: element types, sizes, and the exact scan with the error of a right one.

    h_t = a_t h_{t-1} + b_t

Bounds, with u the rounding unit of float32. Whatever the order, a term of h_t meets each a behind it in one
product and is added at most once per step. So step t makes at most the error of one product and one sum,

    e_t = u (|a_t| m_{t-1} + m_t),   m_t = min(sum|terms|, |h_t| + 4 sqrt(sum terms^2))

with m_t as large as a partial sum of the terms of h_t gets (``grader.problems.bounds``). It is carried on by
the factors behind it: at worst as sum(e), or LUCK sqrt(sum e^2) as errors of rounding are independent. What
a and b are off by themselves is not: da |h_{t-1}| + db is carried on at its worst.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems import bounds
from grader.problems.distributions import STREAMS, build_case, normal
from grader.problems.dtypes import DTYPES
from grader.problems.problem import Budget, Inputs, Range, Space

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Case

    Array = NDArray[np.float64]
    Row = tuple[str, str, int, int, int, str]
    """Group, element type, batch, length, width and distribution of a case."""

TYPES = ("float32", "float16", "bfloat16")
UNIT = bounds.PRECISIONS["float32"].unit

SHORT, BORDER, LONG = "short sequences", "lengths around a border", "long sequences"
WIDTHS, STATE, VALUES = "widths", "initial state", "slow and fast decay"
GROUPS = (SHORT, BORDER, LONG, WIDTHS, STATE, VALUES, *TYPES[1:], STREAMS)
NO_STATE = "no initial state"
LEAST_SEQUENCE = 16  # elements that a sequence counts for at least: many kernels give it whole blocks
SLOW, GONE = "slow decay", "decay that is hardly there"


def cases_of(seed: int, table: Iterable[Row]) -> tuple[Case, ...]:
    """Cases from rows of the table, each with a seed of its own."""
    return tuple(
        case_of(group, {"batch": batch, "length": length, "width": width}, f"{dtype}, {content}", seed)
        for group, dtype, batch, length, width, content in table
    )


def case_of(group: str, sizes: Mapping[str, int], distribution: str, seed: int) -> Case:
    """A case; ``distribution`` is an element type and a content."""
    dtype, _, content = distribution.partition(", ")
    return replace(build_case(group, sizes, distribution, seed), distribution=content, dtype=dtype)


def space(cases: Iterable[Case], arrays: int) -> Space:
    """The sizes that inputs may have, in the types and contents of ``cases``.

    ``arrays`` is the number of arrays of shape [batch, length, width].
    """
    return Space(
        ranges={"batch": Range(1, 65_535), "length": Range(1, 1 << 13), "width": Range(1, 1 << 17)},
        distributions=tuple(dict.fromkeys(f"{case.dtype}, {case.distribution}" for case in cases)),
        elements=lambda sizes: (
            arrays * sizes["batch"] * max(LEAST_SEQUENCE, sizes["length"] * sizes["width"])
        ),
        case=case_of,
        budget=Budget(alone=1 << 17),
        alike=tuple(f"{dtype}, usual" for dtype in TYPES),
        products={"sequences": ("batch", "width")},
    )


def graded(seed: int, further: Iterable[Row]) -> tuple[Case, ...]:
    """The cases that all problems have, and the ``further`` rows of a problem, group by group."""
    draw = np.random.default_rng(seed)
    length, width = int(draw.integers(1100, 3000)), int(draw.integers(40, 90))
    borders = (31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025)
    table = [
        *((SHORT, "float32", 2, steps, 32, "usual") for steps in (1, 2, 3, 7)),
        *((BORDER, "float32", 1, steps, 6, "usual") for steps in borders),
        (LONG, "float32", 1, length, 5, "usual"),
        (LONG, "float32", 1, 4096, 4, SLOW),
        (LONG, "float32", 1, 4097, 2, "usual"),
        *((WIDTHS, "float32", 2, 40, many, "usual") for many in (1, 2, 3, 31, 33, 63, 64, width, 257)),
        (WIDTHS, "float32", 300, 3, 2, "usual"),
        (WIDTHS, "float32", 1, 2, 4096, "usual"),
        (STATE, "float32", 3, 70, 10, NO_STATE),
        (STATE, "float32", 3, 200, 10, SLOW),
        (STATE, "float32", 5, 1, 33, "usual"),
        (VALUES, "float32", 2, 300, 8, SLOW),
        (VALUES, "float32", 2, 300, 8, GONE),
        *(row for dtype in TYPES[1:] for row in half_shapes(dtype)),
        (STREAMS, "float32", 2, 130, 40, "usual"),
        (STREAMS, "bfloat16", 2, 260, 64, "usual"),
        *further,
    ]
    return cases_of(seed, sorted(table, key=lambda row: GROUPS.index(row[0])))


def half_shapes(dtype: str) -> list[Row]:
    """The rows of the group of a type of 16 bits."""
    shapes = ((2, 1, 1), (3, 33, 7), (2, 100, 34), (1, 300, 70), (1, 2049, 4))
    return [
        *((dtype, dtype, *shape, "usual") for shape in shapes),
        (dtype, dtype, 2, 500, 8, SLOW),
        (dtype, dtype, 2, 60, 8, NO_STATE),
    ]


def stored(values: NDArray[np.floating], case: Case) -> NDArray[np.generic]:
    """``values`` as the case's type holds them."""
    return values.astype(DTYPES[case.dtype].storage)


def shape_of(case: Case) -> tuple[int, int, int]:
    """Batch, length and width."""
    return case.sizes["batch"], case.sizes["length"], case.sizes["width"]


def start_of(random: np.random.Generator, case: Case) -> NDArray[np.float32] | None:
    """The initial state [batch, width], or none."""
    batch, _, width = shape_of(case)
    return None if case.distribution == NO_STATE else normal(random, (batch, width), 2.0)


def start_in(data: Inputs) -> Array:
    """The initial state [batch, width] of a call: zeros if there is none."""
    shape = (int(data.scalars["batch"]), int(data.scalars["width"]))
    return data.wide("h0") if data.arrays["h0"] is not None else np.zeros(shape)


def some_sequences(data: Inputs, index: NDArray[np.intp]) -> Inputs:
    """The inputs of the sequences in ``index`` alone."""
    batch = int(data.scalars["batch"])
    arrays = {
        name: array[index] if array is not None and name != "c" else array
        for name, array in data.arrays.items()
    }
    outputs = {
        name: (index.size, *shape[1:]) if shape[0] == batch and name != "dc" else shape
        for name, shape in data.outputs.items()
    }
    return Inputs(arrays, outputs, {**data.scalars, "batch": index.size})


@dataclass(frozen=True)
class Scan:
    """States [batch, length, width] and the error of a right kernel's."""

    value: Array
    error: Array


def scan(
    a: Array, b: Array, start: Array, a_error: Array | float = 0.0, b_error: Array | float = 0.0
) -> Scan:
    """The exact states, and their bound; ``a_error`` and ``b_error`` are absolute, of each element."""
    shape = a.shape
    a_off, b_off = np.broadcast_to(a_error, shape), np.broadcast_to(b_error, shape)
    value, error = np.empty(shape), np.empty(shape)
    state, total, largest, square = start, np.abs(start), np.abs(start), start * start
    inherited, worst, variance = np.zeros_like(start), np.zeros_like(start), np.zeros_like(start)
    for t in range(shape[1]):
        factor, added = a[:, t], b[:, t]
        size = np.abs(factor)
        inherited = size * inherited + a_off[:, t] * np.abs(state) + b_off[:, t]
        state = factor * state + added
        total = size * total + np.abs(added)
        square = factor * factor * square + added * added
        slip = size * largest
        largest = np.minimum(total, np.abs(state) + 4 * np.sqrt(square))
        slip = UNIT * (slip + largest)
        worst = size * worst + slip
        variance = factor * factor * variance + slip * slip
        value[:, t] = state
        error[:, t] = inherited + np.minimum(worst, bounds.LUCK * np.sqrt(variance))
    return Scan(value, error)


def states(a: Array, b: Array, start: Array) -> Array:
    """The states h_t = a_t h_{t-1} + b_t in float64, without a bound."""
    value = np.empty(np.broadcast_shapes(a.shape, b.shape))
    state = start
    for t in range(value.shape[1]):
        state = a[:, t] * state + b[:, t]
        value[:, t] = state
    return value


def element_bytes(case: Case) -> int:
    """The bytes of one element of the arrays of the case's type."""
    return DTYPES[case.dtype].itemsize


def timing_cases(seed: int) -> tuple[Case, ...]:
    """The timed cases: a short and a long text, with the sequences and channels of the published model."""
    table = [
        ("short", "bfloat16", 8, 512, 1024, "usual"),
        ("long", "bfloat16", 8, 4096, 1024, "usual"),
        ("long", "float32", 8, 1024, 1024, "usual"),
    ]
    return cases_of(seed, table)
