"""What the wrong numbers of an output look like, where no formula made them.

Layer: imports numpy and the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.evidence import ALMOST_ALL, UNEXPLAINED
from grader.records.diagnosis import Diagnosis, as_question

if TYPE_CHECKING:
    from grader.judge.correctness.diagnosis.evidence import Evidence, Mask

WIDESPREAD = 0.2  # share of wrong elements at which rounding may be the cause: it hits all alike
DIFFERENT_VALUES = 8  # fewer may be such that half precision holds by chance
RANDOM_SIGNS = 32  # wrong elements: of fewer, any error can have either sign
NEXT_TO_NOTHING = 1e-5
CHANGING = 0.3  # share of neighbours that differ in sign: a half where errors are rounding, but for chance
FEWEST_EXCHANGED = 3  # rows or columns: of two, many elements stay where they are


def constant_factor(evidence: Evidence) -> Diagnosis | None:
    """Everything is right but for one factor."""
    usable = np.isfinite(evidence.actual) & (np.abs(evidence.expected) > 4 * evidence.comparison.bound)
    if usable.sum() < 8 or (evidence.wrong & usable).sum() < ALMOST_ALL * usable.sum():
        return None
    ratio = evidence.actual[usable] / evidence.expected[usable]
    middle = float(np.median(ratio))
    steady = np.abs(ratio - middle) <= 1e-3 * abs(middle)
    if middle == 0 or abs(middle - 1) < 1e-3 or steady.mean() < ALMOST_ALL:
        return None
    return Diagnosis("constant_factor", f"every element is off by the same factor of {middle:.6g}")


def row_factor_or_offset(evidence: Evidence) -> Diagnosis | None:
    """Each row is right but for its own factor or its own offset: a wrong row sum, mean or maximum."""
    actual, expected = np.atleast_2d(evidence.actual), np.atleast_2d(evidence.expected)
    wrong = np.atleast_2d(evidence.wrong)
    rows = wrong.any(axis=-1) & np.isfinite(actual).all(axis=-1)
    if actual.shape[-1] < 4 or rows.sum() < 2 or evidence.actual.ndim == 1:
        return None
    actual, expected = actual[rows], expected[rows]
    error = actual - expected
    size = np.abs(error).mean(axis=-1)
    if (error.std(axis=-1) <= UNEXPLAINED * size).mean() >= ALMOST_ALL:
        cause, question = "each row is off by a constant of its own", "is a row sum, mean or maximum wrong?"
        return as_question("row_offset", cause, question)
    weight = (expected**2).sum(axis=-1)
    factor = (actual * expected).sum(axis=-1) / np.where(weight > 0, weight, 1.0)
    rest = np.abs(actual - factor[:, None] * expected).mean(axis=-1)
    if (rest <= UNEXPLAINED * size).mean() >= ALMOST_ALL:
        cause, question = (
            "each row is off by a factor of its own",
            "is the sum that it is divided by incomplete, or a variable that is never set to 0?",
        )
        return as_question("row_factor", cause, question)
    return None


def zeros(evidence: Evidence) -> Diagnosis | None:
    """Wrong elements are zero."""
    if (evidence.actual[evidence.wrong] == 0).mean() >= ALMOST_ALL:
        return Diagnosis("zeros", "the wrong elements are zero")
    return None


def nearly_zero(evidence: Evidence) -> Diagnosis | None:
    """Nearly all elements are wrong, and next to nothing beside what they should be."""
    size = np.abs(evidence.expected)
    nothing = np.abs(evidence.actual) <= NEXT_TO_NOTHING * size
    if (nothing & evidence.wrong).mean() < ALMOST_ALL or evidence.wrong.sum() < 4:
        return None
    return Diagnosis(
        "nearly_zero",
        "the numbers are nearly zero",
        "does what is added up cancel (deviations from a mean do, unless they are squared first), or is a "
        "divisor far too large?",
    )


def displaced(evidence: Evidence) -> Diagnosis | None:
    """From some row or column on, what belongs to others stands there."""
    for axis, many in ((evidence.wrong.ndim - 1, "columns"), (0, "rows")):
        other_axes = tuple(other for other in range(evidence.wrong.ndim) if other != axis)
        indices = np.flatnonzero(evidence.wrong.any(axis=other_axes))
        first, count = int(indices[0]), evidence.wrong.shape[axis]
        for shift in sorted({first, 1, -1} - {0}):
            target = np.arange(first, count if shift > 0 else count + shift)
            source = target % first if shift == first else target - shift
            if target.size < 4 or source.min() < 0:
                continue
            actual, theirs, bound = (
                np.take(part, index, axis)
                for part, index in (
                    (evidence.actual, target),
                    (evidence.expected, source),
                    (evidence.comparison.bound, source),
                )
            )
            wrong = np.take(evidence.wrong, target, axis)
            with np.errstate(invalid="ignore"):
                theirs_there = np.abs(actual - theirs) <= 4 * bound
            if wrong.mean() > 0.5 and theirs_there[wrong].mean() >= ALMOST_ALL:
                way = f"{abs(shift)} {many} {'before' if shift > 0 else 'behind'}"
                return Diagnosis(f"displaced_{many}", f"{many} from {first} on hold what belongs {way}")
    return None


def transposed(evidence: Evidence) -> Diagnosis | None:
    """All elements are there, column by column instead of row by row."""
    columns = evidence.wrong.shape[-1]
    rows = evidence.wrong.size // columns
    if min(rows, columns) < FEWEST_EXCHANGED:
        return None
    actual = evidence.actual.reshape(columns, rows).T.reshape(evidence.wrong.shape)
    with np.errstate(invalid="ignore"):
        theirs = np.abs(actual - evidence.expected) <= 4 * evidence.comparison.bound
    if theirs.mean() < ALMOST_ALL:
        return None
    return Diagnosis("transposed", "it is stored with rows and columns exchanged")


def overflow(evidence: Evidence) -> Diagnosis | None:
    """NaN or infinity that came from arithmetic."""
    comparison = evidence.comparison
    if comparison.nan + comparison.infinite < 0.5 * comparison.bad:
        return None
    strange = ~np.isfinite(evidence.actual)
    rows = np.atleast_2d(strange & evidence.wrong).any(axis=-1)
    question = (
        "does an exponential overflow, is 0 divided by 0, the root of a negative variance taken (E[x^2] - "
        "E[x]^2 can round to less than 0), or a variable read that is never set?"
    )
    overflowing = [
        text for text, formula in evidence.formulas.items() if _overlap(strange, ~np.isfinite(formula))
    ]
    likely = f" So it would be if {', or if '.join(overflowing)}" if overflowing else ""
    where = f"NaN or infinity in {int(rows.sum())} of {rows.size} rows"
    return as_question("overflow", where, question + likely)


def _overlap(first: Mask, other: Mask) -> bool:
    """Whether nearly all elements of either mask are in both."""
    return bool((first & other).sum() >= ALMOST_ALL * (first | other).sum())


def stored_in_half(evidence: Evidence) -> Diagnosis | None:
    """All values, of which many are wrong and few the same, are float16 or bfloat16 numbers."""
    if evidence.raw.dtype != np.float32:
        return None
    numbers = np.isfinite(evidence.actual) & (evidence.actual != 0)
    values = np.unique(evidence.actual[numbers]).astype(np.float32)
    if values.size < DIFFERENT_VALUES or evidence.wrong[numbers].mean() < WIDESPREAD:
        return None
    if not (values.view(np.uint32) & np.uint32(0xFFFF)).any():  # first: most of these fit float16 as well
        return Diagnosis("stored_in_half", "matches bfloat16: every value is one that bfloat16 can hold")
    with np.errstate(over="ignore"):
        if np.array_equal(values.astype(np.float16).astype(np.float32), values):
            return Diagnosis("stored_in_half", "matches float16: every value is one that float16 can hold")
    return None


def incomplete_or_half(evidence: Evidence) -> Diagnosis | None:
    """Small errors of either sign that follow the numbers of each row.

    Those of a sum are the same way in a row, or follow its numbers, whether it is rounded or misses a few.
    """
    name = _of_the_size_of(evidence)
    if name is None or _random_signs(evidence):
        return None
    return as_question(
        "incomplete_or_half",
        f"errors of the size of {name} that follow the numbers of each row",
        f"does a sum over the row leave some of them out, or is it kept in {name}?",
    )


def low_precision(evidence: Evidence) -> Diagnosis | None:
    """Small errors of either sign nearly everywhere, of the size that half precision makes."""
    name = _of_the_size_of(evidence)
    if name is None or not _random_signs(evidence):
        return None
    return Diagnosis("low_precision", f"matches {name}: errors of its size nearly everywhere")


def _of_the_size_of(evidence: Evidence) -> str | None:
    """The half precision whose rounding makes errors as small as these, which are nearly everywhere."""
    widespread = evidence.wrong.mean() >= WIDESPREAD and evidence.wrong.sum() >= RANDOM_SIGNS
    if np.count_nonzero(~np.isfinite(evidence.actual)) or not widespread:
        return None
    error = evidence.actual - evidence.expected
    scale = np.abs(evidence.expected).max(axis=-1, keepdims=True)
    balance = (error[evidence.wrong] > 0).mean()
    if (np.abs(error) / np.where(scale > 0, scale, 1.0)).max() > 0.05 or not 0.1 < balance < 0.9:
        return None
    sized = evidence.expected != 0
    level = float(np.median(np.abs(error[sized]) / np.abs(evidence.expected[sized]))) if sized.any() else 0.0
    if not 2e-5 < level <= 2e-2:
        return None
    return "float16" if level <= 7e-4 else "bfloat16"


def _random_signs(evidence: Evidence) -> bool:
    """Whether the errors' signs change at random along the rows, in whatever order of their numbers."""
    shape = -1, evidence.wrong.shape[-1]
    positive = evidence.actual > evidence.expected
    for numbers in (evidence.expected, *evidence.alike):
        order = np.argsort(numbers.reshape(shape), axis=-1)
        sign, wrong = (
            np.take_along_axis(part.reshape(shape), order, axis=-1) for part in (positive, evidence.wrong)
        )
        both = wrong[:, 1:] & wrong[:, :-1]
        if (sign[:, 1:] != sign[:, :-1])[both].sum() < CHANGING * both.sum():
            return False
    return True
