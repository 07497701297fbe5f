"""Whether an output is right: every element against what the oracle expects, nothing sampled.

Pure functions of arrays. An element is wrong if ``not (|actual - expected| <= allowed)``: written this way
round a NaN can never pass.

Layer: imports numpy and the problem's shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.dtypes import poisoned
from grader.problems.problem import Candidate, Expectation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

SHOWN = 5  # wrong elements that a report lists
_DOWN, _ACROSS = 16, 32  # cells of the picture of what is wrong
_COLOURS = 4  # a last axis of so many elements, behind two others, is that of a pixel's colours


@dataclass(frozen=True)
class BadElement:
    """One wrong element."""

    index: tuple[int, ...]
    expected: float | int
    actual: float | int


@dataclass(frozen=True)
class Comparison:
    """One output against its expectation.

    Attributes:
        name: the parameter.
        max_error: absolute error of the finite element that is furthest beyond, or nearest to, its bound.
        allowed: the bound of that element.
        bad: wrong elements.
        total: all elements.
        nan: wrong elements that are NaN.
        infinite: wrong elements that are infinite.
        unwritten: wrong elements that still hold the poison from before the call.
        first_bad: the first ``SHOWN`` wrong elements.
        expected: the accepted content nearest to the output, row by row; if all of it is right by the first
            ones that are accepted, no other is looked at.
        bound: its largest absolute error, infinite where only finite numbers are asked for.
        wrong: which elements are wrong.
    """

    name: str
    max_error: float | int
    allowed: float
    bad: int
    total: int
    nan: int
    infinite: int
    unwritten: int
    first_bad: tuple[BadElement, ...]
    expected: Array
    bound: Array
    wrong: Mask

    @property
    def right(self) -> bool:
        """Whether every element is right."""
        return self.bad == 0

    @property
    def picture(self) -> list[str]:
        """Where its wrong elements are; see ``OutputResult.picture``. Empty where there are none."""
        return picture(self.wrong) if self.bad else []


def compare(name: str, expectation: Expectation, actual: NDArray[np.generic]) -> Comparison:
    """The output ``actual`` against the candidates of ``expectation``, the best one of each row counting.

    As soon as all is right, the others are not computed: that is most of the time of a right submission. A
    number that is expected without dimensions is a row of one element.
    """
    if not expectation.candidates[0].expected.ndim:
        return compare(name, _as_row(expectation), actual.reshape(1))
    values = actual.astype(np.float64)
    loose = np.False_ if expectation.finite_only is None else expectation.finite_only[..., None]
    first, further = expectation.candidates[0], _further(expectation)
    expected, bound, error, wrong = _judged(first, actual, values)
    shown: NDArray[np.generic] = first.expected
    while (wrong & ~loose).any() and (candidate := next(further, None)) is not None:
        other = _judged(candidate, actual, values)
        better = _distance(*other[1:]) < _distance(bound, error, wrong)
        shown = np.where(better, candidate.expected, shown)
        expected, bound, error, wrong = (
            np.where(better, theirs, chosen)
            for theirs, chosen in zip(other, (expected, bound, error, wrong), strict=True)
        )
    if expectation.finite_only is not None:
        wrong = np.where(loose, ~np.isfinite(values), wrong)
        bound = np.where(loose, np.inf, bound)
    max_error: float | int
    if shown.dtype.kind in "iu" and actual.dtype.kind in "iu":
        max_error, allowed = _largest_difference(shown, actual), 0.0
    else:
        max_error, allowed = _worst(error, bound)
    indices = [tuple(map(int, index)) for index in np.argwhere(wrong)[:SHOWN]]
    lost = values[wrong]
    return Comparison(
        name=name,
        max_error=max_error,
        allowed=allowed,
        bad=lost.size,
        total=values.size,
        nan=int(np.count_nonzero(np.isnan(lost))),
        infinite=int(np.count_nonzero(np.isinf(lost))),
        unwritten=int(np.count_nonzero(poisoned(actual[wrong]))),
        first_bad=tuple(BadElement(index, shown[index].item(), actual[index].item()) for index in indices),
        expected=expected,
        bound=bound,
        wrong=wrong,
    )


def _as_row(expectation: Expectation) -> Expectation:
    """The expectation of a single number as that of a row."""

    def row(candidate: Candidate) -> Candidate:
        return Candidate(candidate.expected.reshape(1), candidate.allowed.reshape(1))

    further = expectation.further
    return Expectation(
        tuple(map(row, expectation.candidates)),
        expectation.finite_only,
        lambda: tuple(map(row, further())),
    )


def _further(expectation: Expectation) -> Iterator[Candidate]:
    """The candidates behind the first one, each made when it is asked for."""
    yield from expectation.candidates[1:]
    yield from expectation.further()


def picture(wrong: Mask) -> list[str]:
    """How much of each part of an array is wrong, as rows of at most 16 texts of at most 32 characters.

    The last axis goes across, all others go down; of the colours of a pixel one suffices. A part is ``.`` if
    all of it is right, ``#`` if all is wrong, and else a digit from 1 to 9: tenths of it, rounded up.
    """
    if wrong.ndim > 2 and wrong.shape[-1] <= _COLOURS:
        wrong = np.asarray(wrong.any(axis=-1))
    rows = wrong.reshape(-1, wrong.shape[-1])
    down, across = (_starts(size, most) for size, most in zip(rows.shape, (_DOWN, _ACROSS), strict=True))
    counts = np.add.reduceat(np.add.reduceat(rows, down, axis=0, dtype=np.int64), across, axis=1)
    sizes = np.outer(np.diff([*down, rows.shape[0]]), np.diff([*across, rows.shape[1]]))
    tenths = np.minimum(np.ceil(10 * counts / sizes), 9).astype(int)
    marks = np.where(counts == sizes, "#", np.where(counts == 0, ".", tenths.astype(str)))
    return ["".join(row) for row in marks]


def _starts(size: int, most: int) -> NDArray[np.int64]:
    """Where equal parts of ``size`` elements begin, of which there are at most so many."""
    parts = min(size, most)
    return np.arange(parts) * size // parts


def changed_elements(before: NDArray[np.generic], after: NDArray[np.generic]) -> int:
    """How many elements of an array that must not change differ in any bit."""
    bits = f"u{before.dtype.itemsize}"
    earlier, other = (np.ascontiguousarray(array).view(bits) for array in (before, after))
    return int(np.count_nonzero(earlier != other))


def _judged(
    candidate: Candidate, actual: NDArray[np.generic], values: Array
) -> tuple[Array, Array, Array, Mask]:
    """Expected, bound, error and which elements are wrong, for one candidate; integers have to be equal."""
    expected = candidate.expected.astype(np.float64, copy=False)
    with np.errstate(invalid="ignore", over="ignore"):
        error = values - expected
    np.abs(error, out=error)
    if candidate.expected.dtype.kind in "iu":  # float64 cannot tell large ones apart
        return expected, candidate.allowed, error, np.asarray(actual != candidate.expected)
    wrong = np.asarray(~(error <= candidate.allowed))
    if wrong.any():  # infinity is itself, and so is NaN
        wrong &= (values != expected) & ~(np.isnan(expected) & np.isnan(values))
    return expected, candidate.allowed, error, wrong


def _distance(bound: Array, error: Array, wrong: Mask) -> Array:
    """How far each row is from a candidate: wrong elements, then the largest share of the allowed error."""
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(wrong, 0.0, np.nan_to_num(error / bound))
    count: Array = wrong.sum(axis=-1, keepdims=True) + 0.5 * share.max(axis=-1, keepdims=True)
    return count


def _largest_difference(first: NDArray[np.generic], other: NDArray[np.generic]) -> int:
    """The largest difference of two arrays of integers, exactly: it may be more than an int64 holds."""
    signed = first.astype(np.int64), other.astype(np.int64)
    return int((np.maximum(*signed) - np.minimum(*signed)).view(np.uint64).max(initial=0))


def _worst(errors: Array, bounds: Array) -> tuple[float, float]:
    """Error and bound of the finite element with the largest ratio of the two; zeros if there is none."""
    if not errors.size:
        return 0.0, 0.0
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = errors / bounds
    worst = int(np.argmax(ratio))
    if not np.isfinite(ratio.flat[worst]):  # the largest of them, or one that is no number
        ratio[~np.isfinite(errors) | np.isnan(ratio)] = -1.0
        worst = int(np.argmax(ratio))
    if ratio.flat[worst] < 0:
        return 0.0, 0.0
    index = np.unravel_index(worst, ratio.shape)
    return float(errors[index]), float(bounds[index])
