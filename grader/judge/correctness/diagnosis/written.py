"""Outputs that were not written, or not in this call.

Layer: imports numpy and the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.evidence import ALMOST_ALL
from grader.problems.dtypes import poisoned
from grader.records.diagnosis import Diagnosis, as_question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.judge.correctness.diagnosis.evidence import Evidence, Mask

NOTHING_WRITTEN = Diagnosis(
    "nothing_written", "nothing was written: the output still holds what was there before", unwritten=True
)
"""The whole diagnosis of a case whose outputs all are as they were; reports may fold such cases."""
UNCHANGED = as_question(
    "unchanged",
    "what is stored is what was there before",
    "does a factor or a term make no difference, or is what was read stored again?",
)
"""Instead of that where a kernel has stored to the outputs."""
NOTHING_LAUNCHED = Diagnosis(
    "nothing_launched",
    "no kernel was launched in this case",
    "Launch it in this function, with no condition or loop around the launch that can leave it out.",
    unwritten=True,
)
"""Where something else has filled the outputs."""
OF_PREVIOUS_CALL = "result_of_previous_call"
"""The kind of a diagnosis: of outputs that are those of the call before."""
ROW_ENDS = "row_ends_unwritten"
"""The kind of a diagnosis: of rows whose first elements were written."""
FEWEST_WRAPPED = 1 << 10  # rows: no number of a row has fewer bits
MOST_ROWS = 128  # of a block, which ends behind the last row
MOST_IN_FLOAT = 1 << 24
MOST_THREADS = 1 << 10  # of a block


def nothing_written(evidence: Evidence) -> Diagnosis | None:
    """All elements still hold the poison, or, in place, the input."""
    same = (
        evidence.comparison.unwritten == evidence.wrong.sum() == evidence.wrong.size
        if evidence.before is None
        else np.array_equal(evidence.before, evidence.raw)
    )
    return NOTHING_WRITTEN if same else None


def result_of_previous_call(evidence: Evidence) -> Diagnosis | None:
    """All elements are what the call before returned, and they are not all the same number."""
    if evidence.previous is None or not np.array_equal(evidence.previous, evidence.raw):
        return None
    if (evidence.raw == evidence.raw.flat[0]).all():  # as each call may make anew
        return None
    question = "is something kept between calls (static, cached pointer)?"
    return as_question(OF_PREVIOUS_CALL, "this is the result of the call before", question)


def same_number(evidence: Evidence) -> Diagnosis | None:
    """All elements are the same number, which is neither 0 nor right anywhere, nor is it what was there."""
    number = evidence.raw.flat[0]
    if not (evidence.wrong.all() and (evidence.raw == number).all()) or number == 0:
        return None
    if poisoned(evidence.raw).any() or not np.isfinite(evidence.actual.flat[0]):
        return None
    if evidence.wrong.size == 1 and not _extreme(evidence.raw):
        return None
    return as_question(
        "same_number",
        f"every element is {number.item()}",
        "does a variable begin with this number, and does nothing replace it?",
    )


def _extreme(array: NDArray[np.generic]) -> bool:
    """Whether the first number is the least or the largest of its type of integers, as a start value is."""
    if array.dtype.kind not in "iu":
        return False
    limits = np.iinfo(array.dtype.name)
    return array.flat[0].item() in {limits.min, limits.max}


def partly_unwritten(evidence: Evidence) -> Diagnosis | None:
    """Some elements still hold the poison or, in place, the input."""
    if evidence.before is None:
        untouched = evidence.wrong & (np.isnan(evidence.actual) | poisoned(evidence.raw))
        sure = evidence.comparison.unwritten == untouched.sum() > 0
    else:
        untouched = evidence.wrong & (evidence.raw == evidence.before)
        sure = bool(untouched.sum() >= ALMOST_ALL * evidence.wrong.sum())
    if not sure or untouched.sum() < ALMOST_ALL * evidence.wrong.sum():
        return None
    cause = f"{int(untouched.sum())} of {untouched.size} elements were never written"
    if evidence.wrong.ndim > 1:
        rows = np.reshape(untouched, (-1, evidence.wrong.shape[-1]))
        columns: Mask = np.asarray(rows.all(axis=0))
        first = int(np.argmax(columns))
        if not columns.all() and columns[first:].all() and not rows[:, :first].any():
            return Diagnosis(
                ROW_ENDS,
                f"{cause}, in each row those from column {first} on",
                "does the loop over a row, or the mask of a store, end before the row does?",
            )
    return Diagnosis("partly_unwritten", cause, unwritten=True)


def last_columns_unwritten(evidence: Evidence) -> Diagnosis | None:
    """The last columns were not touched in any wrong row, and sums over the row miss them."""
    wrong = evidence.wrong.reshape(-1, evidence.wrong.shape[-1])
    before = evidence.before
    untouched: Mask = poisoned(evidence.raw) if before is None else np.asarray(evidence.raw == before)
    rows = wrong.any(axis=-1)
    columns = np.asarray(untouched.reshape(wrong.shape)[rows].all(axis=0))
    first = columns.size - int(np.argmin(columns[::-1])) if not columns.all() else 0
    if not 0 < first < columns.size or evidence.wrong.ndim == 1:
        return None
    if np.mean(wrong[rows][:, first:]) < ALMOST_ALL or not wrong[:, :first].any():
        return None
    return as_question(
        "last_columns_unwritten",
        f"columns from {first} on were never written, and the others are wrong as well",
        "has every element of a row a thread, and does it count in the row's sum?",
    )


def wrapped_rows(evidence: Evidence) -> Diagnosis | None:
    """In place: rows from a power of two on were not touched, and as many of the first ones done twice."""
    if evidence.before is None or evidence.wrong.ndim == 1:
        return None
    wrong = evidence.wrong.reshape(-1, evidence.wrong.shape[-1])
    untouched = np.asarray(evidence.raw == evidence.before).reshape(wrong.shape).all(axis=1) & wrong.any(
        axis=1
    )
    rows = np.flatnonzero(untouched)
    first = int(rows[0]) if rows.size else 0
    if first < FEWEST_WRAPPED or first & (first - 1) or rows.size < ALMOST_ALL * (len(wrong) - first):
        return None
    if wrong[rows.size + MOST_ROWS : first].any() or not wrong[: rows.size].any():
        return None
    return as_question(
        "wrapped_rows",
        f"rows from {first} on were never written, and the first ones twice",
        "is the number of a row, or of a block, kept in too few bits?",
    )


def every_second_unwritten(evidence: Evidence) -> Diagnosis | None:
    """From some row on, elements at odd places were never written: a float has no odd numbers above 2^24."""
    wrong = evidence.wrong.reshape(-1, evidence.wrong.shape[-1])
    before = evidence.before
    untouched = poisoned(evidence.raw) if before is None else np.asarray(evidence.raw == before)
    rows = np.flatnonzero(wrong.any(axis=1))
    threads = MOST_IN_FLOAT // max(1, int(rows[0]))
    if (
        evidence.wrong.ndim == 1
        or int(rows[0]) * threads != MOST_IN_FLOAT
        or not 1 <= threads <= MOST_THREADS
    ):
        return None
    odd = untouched.reshape(wrong.shape)[rows[0] :, 1::2]
    even = untouched.reshape(wrong.shape)[rows[0] : 2 * rows[0], ::2]
    if odd.size == 0 or odd.mean() < ALMOST_ALL or even.mean() > 1 - ALMOST_ALL:
        return None
    return as_question(
        "every_second_unwritten",
        f"from row {rows[0]} on, every second element was never written",
        "is an index or a size kept in a float, which has no odd numbers above "
        f"2^24 = {rows[0]} x {threads}?",
    )


def all_nan(evidence: Evidence) -> Diagnosis | None:
    """A poisoned output is NaN everywhere: += instead of = in memory that was not zeroed."""
    if (
        evidence.before is None
        and evidence.comparison.nan == evidence.wrong.size > evidence.comparison.unwritten
    ):
        return as_question(
            "all_nan",
            "every element is NaN",
            "is 0 divided by 0, the root of a negative variance taken, something uninitialised read, or "
            "is it added to (+=, atomicAdd) without being set first?",
        )
    return None
