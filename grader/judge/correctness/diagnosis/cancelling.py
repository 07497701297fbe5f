"""Small results whose digits a formula loses that subtracts numbers of about 1, such as exp(x) - 1.

Each rounding of a term of about 1 is off by up to a unit roundoff u, whatever the result. So the absolute
error stays at some u while the relative one grows as the result goes to 0, and below u the result vanishes
(Higham, Accuracy and Stability of Numerical Algorithms, 2002, sections 1.7 and 1.14.1). A right formula makes
errors in proportion to the result.

Layer: imports numpy and the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.records.diagnosis import Diagnosis

if TYPE_CHECKING:
    from grader.judge.correctness.diagnosis.evidence import Array, Evidence, Mask

CANCELS = Diagnosis(
    "cancels",
    "cancels near 0: another formula loses these digits",
    evidence="exp(x) - 1 does, for one, as exp(x) is rounded near 1; expm1(x) keeps them",
)
"""Its diagnosis begins so. The formula may be meant all the same, which a teacher can say."""

_UNITS = {"float32": (2.0**-24, 2.0**-126), "float64": (2.0**-53, 2.0**-1022)}
"""The unit roundoff and the least normal number of the types whose results show it."""

_ROUNDINGS = 8.0  # of u that the terms are off by: an exponential by two, a quotient of differences by more
_LEAST = 2.0**-10  # of u: terms of about 1 are off by more, even where they are scaled down behind it
_NEAR = 0.125  # a larger result keeps most of its digits
_FEW = 8  # of fewer errors, no slope is taken
_FLAT = (
    0.4  # of the slope of log(error) over log(result): 0 where a term of 1 is rounded, 1 where the result is
)


def cancels_near_zero(evidence: Evidence) -> Diagnosis | None:
    """Results near 0 are wrong, all by no more than what rounding terms of about 1 explains."""
    if evidence.raw.dtype.name not in _UNITS:
        return None
    unit, least = _UNITS[evidence.raw.dtype.name]
    size, error, wrong = (
        np.abs(evidence.expected),
        np.abs(evidence.actual - evidence.expected),
        evidence.wrong,
    )
    usual = (size > least) & (size <= 1)
    explained = error <= _ROUNDINGS * unit
    if not (explained & (size > least))[wrong].all() or size[wrong].max() > _NEAR:
        return None
    vanished = wrong & (evidence.actual == 0) & (size <= unit)
    if vanished.any() and not _by_sign(evidence, size <= unit):
        return None
    inexact = usual & (error > 0) & ~vanished
    rounded = wrong & ~vanished
    steady = not rounded.any() or (
        bool(error[rounded].max() > unit * _LEAST) and _steady(error[inexact], size[inexact], wrong[inexact])
    )
    return CANCELS if explained[usual].all() and steady else None


def _by_sign(evidence: Evidence, vanishing: Mask) -> bool:
    """Whether it follows from the sign which of the ``vanishing`` results are wrong, and from no place."""
    signs = [vanishing & side for side in (evidence.expected > 0, evidence.expected < 0)]
    return all(evidence.wrong[side].all() or not evidence.wrong[side].any() for side in signs)


def _steady(error: Array, size: Array, wrong: Mask) -> bool:
    """Whether errors are as large for small results as for larger ones, of which some have to be right."""
    if error.size < _FEW or size.max() < 2 * size.min():
        return bool((~wrong).any() and size[wrong].max() <= size[~wrong].min())
    deviation = np.log2(size) - np.log2(size).mean()
    slope = float((deviation * np.log2(error)).sum() / (deviation**2).sum())
    return abs(slope) < _FLAT
