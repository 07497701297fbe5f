"""One wrong output, what it came from, and whether it is what a formula would make.

Layer: imports numpy and the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.records.diagnosis import by_author

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from grader.judge.correctness.comparison import Comparison
    from grader.records.diagnosis import Diagnosis

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

UNEXPLAINED = 0.05  # share of an error that a matching formula may leave unexplained
ALMOST_ALL = 0.98  # of the elements: the rest may be hit by a second bug
LOOKED_AT = 128  # wrong elements, before all are
FAR = 0.2  # share of those that may be far from a formula
PERIODS = (2, 4, 8, 16, 32, 64, 128, 256)
WIDTHS = (1, 4)  # elements of a load
WARP = 32
IN_WRONG_ROWS = ", in the rows that are wrong"  # which are not all where it would be


@dataclass(frozen=True)
class Evidence:
    """One wrong output and what it came from."""

    comparison: Comparison
    actual: Array
    raw: NDArray[np.generic]
    before: NDArray[np.generic] | None  # of an output that is also an input
    previous: NDArray[np.generic] | None  # what the call before this one returned, if it had the same shape
    alike: tuple[Array, ...]  # the inputs of the same shape
    formulas: Mapping[str, Array] = field(default_factory=dict)  # what typical bugs would make of this output
    terms: Array | None = None  # what each row of the inputs adds, if this output is a sum over them

    @property
    def wrong(self) -> Mask:
        """Which elements are wrong."""
        return self.comparison.wrong

    @property
    def expected(self) -> Array:
        """What would be right."""
        return self.comparison.expected

    def part(self, window: tuple[slice, ...]) -> Evidence:
        """The evidence of some indices of the leading axes alone, which formulas are compared with."""
        compared, here = self.comparison, window[: self.actual.ndim]
        return replace(
            self,
            comparison=replace(
                compared,
                expected=compared.expected[here],
                bound=compared.bound[here],
                wrong=compared.wrong[here],
            ),
            actual=self.actual[here],
            raw=self.raw[here],
        )


@dataclass(frozen=True, order=True)
class Likeness:
    """How near an output is to a formula that it follows."""

    only_wrong_rows: bool  # and not in those that are right
    rest: float  # the share of the error that the formula leaves unexplained


@dataclass(frozen=True, order=True)
class Match:
    """A formula that outputs follow; the better one of two is the smaller.

    Attributes:
        unexplained: wrong outputs that do not follow it.
        spoilt: outputs that it would make wrong and that do not follow it.
        likeness: of the output that is least like it.
        rank: among the formulas, the commonest first.
        text: what it is.
        names: the outputs that follow it.
    """

    unexplained: int
    spoilt: int
    likeness: Likeness
    rank: int
    text: str
    names: tuple[str, ...]


def match(
    evidence: Mapping[str, Evidence], results: Mapping[str, Array], rank: int, text: str
) -> Match | None:
    """Which outputs follow what a formula has given as ``results``; None if none does."""
    followed = {
        name: near
        for name, output_evidence in evidence.items()
        if name in results
        and (near := likeness(output_evidence, results[name].reshape(output_evidence.actual.shape)))
        is not None
    }
    if not followed:
        return None
    worst = max(followed.values())
    rounded = replace(worst, rest=round(worst.rest, 4))
    return Match(len(evidence) - len(followed), 0, rounded, rank, text, tuple(followed))


def best(matches: Collection[Match]) -> dict[str, Diagnosis]:
    """The diagnosis of each output that follows a formula, by its best match."""
    explained: dict[str, Diagnosis] = {}
    for formula in sorted(matches):
        for name in formula.names:
            explained.setdefault(
                name, by_author(formula.text + IN_WRONG_ROWS * formula.likeness.only_wrong_rows)
            )
    return explained


def likeness(evidence: Evidence, formula: Array) -> Likeness | None:
    """How near the output is to ``formula``; None if it does not follow it.

    An output follows a formula if nearly everywhere, or in all rows with wrong elements, it is nearer to that
    than to the right answer, and the formula is itself wrong where the output is. A NaN of the formula, 0 / 0
    say, may be anything in the output, as long as the formula has numbers for most of it. Rows of nothing but
    NaN follow no formula: one NaN in a sum makes them, wherever it comes from.
    """
    if not _near_at_some(evidence, formula) or _nan_rows(evidence.actual)[evidence.wrong].mean() >= 0.5:
        return None
    bound = evidence.comparison.bound
    with np.errstate(invalid="ignore"):
        distance = np.abs(evidence.actual - formula)
        error = np.abs(evidence.actual - evidence.expected)
        # of both, because anything small is near a small formula
        size = np.maximum(np.abs(evidence.actual), np.abs(formula))
        error = np.where(np.isfinite(error), error, 0)
        near = distance <= UNEXPLAINED * np.fmin(error, size) + 4 * bound
        wrong_too = ~(np.abs(formula - evidence.expected) <= bound)
    undefined = np.isnan(formula)
    same = (evidence.actual == formula) | (np.isnan(evidence.actual) & undefined)
    near |= same
    if undefined[evidence.wrong].mean() < 0.5:
        same |= undefined
        near |= undefined
    if min(near[evidence.wrong].mean(), wrong_too[evidence.wrong].mean()) < ALMOST_ALL:
        return None
    elsewhere = near.mean() < ALMOST_ALL
    rows = evidence.wrong.any(axis=-1)
    if elsewhere and (rows.ndim == 0 or near[rows].mean() < ALMOST_ALL):
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(same | (error == 0), 0.0, distance / error)[evidence.wrong]
    return Likeness(bool(elsewhere), float(np.nan_to_num(share, nan=1.0).clip(max=1.0).mean()))


def _near_at_some(evidence: Evidence, formula: Array) -> bool:
    """Whether some wrong elements are near to the formula, which costs less than to look at all."""
    indices = np.flatnonzero(evidence.wrong)
    some = indices[:: -(-indices.size // LOOKED_AT)]
    actual, predicted, right = (
        array.ravel()[some] for array in (evidence.actual, formula, evidence.expected)
    )
    bound = evidence.comparison.bound.ravel()[some]
    with np.errstate(invalid="ignore"):
        far = np.abs(actual - predicted) > UNEXPLAINED * np.abs(actual - right) + 4 * bound
    return bool(far.mean() <= FAR)


def _nan_rows(values: Array) -> Mask:
    """Which elements stand in a row that holds nothing but NaN."""
    return np.broadcast_to(np.isnan(values).all(axis=-1, keepdims=True), values.shape)
