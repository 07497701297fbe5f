"""Rows, or the columns of each thread, that are off by a share of a typical bug: an incomplete reduction.

Layer: imports numpy and the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.evidence import ALMOST_ALL, UNEXPLAINED, WARP, WIDTHS
from grader.records.diagnosis import as_question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.judge.correctness.diagnosis.evidence import Array, Evidence, Mask
    from grader.records.diagnosis import Diagnosis

THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # that may share a row
FITTED_ROWS = 64  # enough to tell a pattern
FITTED_ELEMENTS = 1 << 14  # of those rows: every formula is tried for every number of threads
DISAGREEING = 0.4  # share of threads that must not follow the others before they are told apart


def behind_the_first_warp(evidence: Evidence) -> Diagnosis | None:
    """Everything is right in the columns of the first warp, and nothing in those of the others.

    The columns of a row that is longer than a block come round again: the first warp has every so many.
    """
    if evidence.wrong.ndim == 1:  # a vector: no row that a block reduces
        return None
    columns = evidence.wrong.reshape(-1, evidence.wrong.shape[-1])
    columns = columns[columns.any(axis=-1)]
    place = np.arange(columns.shape[1])
    for width in WIDTHS:
        for period in (*(count * width for count in THREADS if count > WARP), columns.shape[1]):
            first = place % period < WARP * width
            if first.all() or columns[:, first].any() or columns[:, ~first].mean() < ALMOST_ALL:
                continue
            every = f" of every {period}" if period < columns.shape[1] else ""
            return as_question(
                "behind_the_first_warp",
                f"the first {WARP * width} columns{every}, those of one warp, are right, the others wrong",
                "does only the first warp get the result of a reduction? Hand it to every thread, through "
                "shared memory",
            )
    return None


def incomplete_reduction(evidence: Evidence) -> Diagnosis | None:
    """Elements of the same thread, or all of a row, are off by a common share of a typical bug.

    A row that is divided by a part of its sum is off by a factor; one from which a part of its sum is
    subtracted is on the way from the right answer to the formula without the sum. If every thread has a part
    of its own, the share is common to the columns that a thread owns.
    """
    shape = -1, evidence.wrong.shape[-1]
    actual, expected, bound = (
        part.reshape(shape) for part in (evidence.actual, evidence.expected, evidence.comparison.bound)
    )
    wrong = evidence.wrong.reshape(shape)
    rows = np.flatnonzero(wrong.any(axis=-1) & np.isfinite(actual).all(axis=-1))
    rows = rows[: max(1, min(FITTED_ROWS, FITTED_ELEMENTS // shape[1]))]
    if evidence.wrong.ndim == 1 or shape[1] < 8 or rows.size == 0:
        return None
    error, slack = (actual - expected)[rows], 4 * bound[rows]
    directions = {"": expected[rows]}
    directions |= {
        text: formula.reshape(shape)[rows] - expected[rows] for text, formula in evidence.formulas.items()
    }
    # What is 0 fits any factor, so it does not count.
    sizes = {
        text: np.count_nonzero(direction)
        for text, direction in directions.items()
        if np.isfinite(direction).all()
    }
    for threads in THREADS:
        for width in WIDTHS[: 1 if threads == 1 else None]:
            owner = np.arange(shape[1]) // width % threads
            least = 3 * rows.size * (owner.max() + 1)
            for text, size in sizes.items():
                if size >= least and _shared(error, directions[text], owner, slack, wrong[rows]):
                    return _disagreement(threads, width, text)
    return None


def _shared(error: Array, direction: Array, owner: NDArray[np.intp], slack: Array, wrong: Mask) -> bool:
    """Whether in each row the error is ``direction`` times a number that all columns of an owner share."""
    order = np.argsort(owner, kind="stable")
    first = np.searchsorted(owner[order], np.arange(owner.max() + 1))
    square, product = (
        np.add.reduceat(part[:, order], first, axis=1) for part in (direction**2, error * direction)
    )
    share = product / np.where(square > 0, square, 1.0)
    rest = np.abs(error - share[:, owner] * direction)
    explained: Mask = rest <= UNEXPLAINED * np.abs(error) + slack
    middle = np.median(share, axis=-1, keepdims=True)
    differing = float((np.abs(share - middle) > UNEXPLAINED * np.abs(share)).mean())
    if first.size > 1 and differing < DISAGREEING:
        return False
    return bool(explained.mean() >= ALMOST_ALL and explained[wrong].mean() >= ALMOST_ALL)


def _disagreement(threads: int, width: int, text: str) -> Diagnosis:
    likeness = f' by a part of what "{text}" would make' if text else " by a common factor"
    if threads == 1:
        kind = f"incomplete_rows {text}"
        return as_question(kind, f"each row is off{likeness}", "is a sum or maximum of the row incomplete?")
    return as_question(
        f"incomplete_threads {text}",
        f"elements {threads * width} columns apart are off{likeness}, others by another",
        "has each thread a sum or maximum of its own? A reduction over threads is missing or stops early",
    )
