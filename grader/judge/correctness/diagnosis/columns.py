"""Sums over the rows of the inputs, column by column: which rows they forget, which tile they go astray in.

Layer: imports numpy and the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.evidence import ALMOST_ALL, PERIODS
from grader.judge.correctness.diagnosis.faults import shuffled_down
from grader.records.diagnosis import by_author

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.judge.correctness.diagnosis.evidence import Array, Evidence
    from grader.records.diagnosis import Diagnosis

FEWEST_SUMS = 4  # of fewer, some set of rows makes any by chance
TILES = (32, 16, 8)  # rows and columns of a block's tile


def miscounted_rows(evidence: Evidence) -> Diagnosis | None:
    """A sum over rows leaves out, or counts twice, the first or the last ones, of all or of every few."""
    terms, error = evidence.terms, evidence.actual - evidence.expected
    if terms is None or error.size < FEWEST_SUMS or not np.isfinite(error).all():
        return None
    rows = len(terms)
    for period in (rows, *(shorter for shorter in PERIODS if shorter < rows)):
        few = [terms[row::period].sum(axis=0) for row in range(period)] if period < rows else terms
        first = np.cumsum(few, axis=0)[:-1]
        last = evidence.expected - first
        of = "of" if period == rows else "of every"
        for change, cause in (
            (-last, f"the sum is over the first {{}} {of} {period} rows only"),
            (-first, f"the sum leaves the first {{}} {of} {period} rows out"),
            (last, f"the first {{}} {of} {period} rows count once, the others twice"),
            (first, f"the first {{}} {of} {period} rows count twice"),
        ):
            distance = np.abs(error - change) / evidence.comparison.bound
            near = (distance <= 4).mean(axis=-1) >= ALMOST_ALL
            if near.any():  # of many rows, several places are near
                count = int(np.where(near, distance.sum(axis=-1), np.inf).argmin()) + 1
                return by_author(cause.format(count))
    return None


def wrong_way_through_a_tile(evidence: Evidence) -> Diagnosis | None:
    """The threads of a square tile add up across its columns, or write the sums of one column to all."""
    terms = evidence.terms
    if terms is None or evidence.actual.ndim != 1 or evidence.actual.size < FEWEST_SUMS:
        return None
    for tile in TILES:
        for text, sums in _through_tiles(terms, tile):
            near = np.abs(evidence.actual - sums) <= 4 * evidence.comparison.bound
            if near[evidence.wrong].mean() >= ALMOST_ALL:
                return by_author(text)
    return None


def _through_tiles(terms: Array, tile: int) -> Iterator[tuple[str, Array]]:
    rows, columns = terms.shape
    padded = np.zeros((-(-rows // tile) * tile, -(-columns // tile) * tile))
    padded[:rows, :columns] = terms
    # [tile of columns, row of the tile, column of the tile]: thread (x, y) has added up every row y
    held = padded.reshape(-1, tile, padded.shape[1] // tile, tile).sum(axis=0).swapaxes(0, 1)
    across = f"the sums run along the rows of a {tile} x {tile} tile, not down its columns"
    for text, sums in (
        (f"{across}: is the tile transposed before the reduction?", held.sum(axis=2)),
        (f"{across}, and one row's stands for all", np.repeat(held[:, 0].sum(axis=1), tile)),
        (
            f"the first column of a {tile} x {tile} tile stands for all: which thread writes which column?",
            np.repeat(held[:, :, 0].sum(axis=1), tile),
        ),
        (
            f"the first column of a {tile} x {tile} tile stands for all: which thread writes which column?",
            shuffled_down(held[:, :, 0], np.add),
        ),
    ):
        yield text, sums.reshape(-1)[:columns]
