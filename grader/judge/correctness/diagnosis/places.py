"""Where the wrong elements of an output are, in words.

Layer: imports numpy and the evidence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.evidence import PERIODS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.judge.correctness.diagnosis.evidence import Evidence, Mask


def where(evidence: Evidence, sizes: tuple[str, ...]) -> str | None:
    """Where the wrong elements are: columns from one on, the last ones, every 32nd, rows, batches, heads."""
    wrong = evidence.wrong
    axes = sizes if len(sizes) >= wrong.ndim > 1 else ()
    parts = [text for text in (_columns(wrong), *_leading(wrong, axes)) if text]
    return ", ".join(parts) or None


def _columns(wrong: Mask) -> str | None:
    """The pattern of wrong columns (last axis), over all rows that have one."""
    return _along(np.asarray(wrong.reshape(-1, wrong.shape[-1]).any(axis=0)), "column", "columns")


def _leading(wrong: Mask, axes: tuple[str, ...]) -> list[str]:
    """The pattern of wrong indices along every axis but the last; rows if there is only one."""
    parts = []
    for axis in range(wrong.ndim - 1):
        hit = np.asarray(wrong.any(axis=tuple(other for other in range(wrong.ndim) if other != axis)))
        name = axes[axis].removesuffix("_size") if wrong.ndim > 2 and axes else "row"
        if text := _along(hit, name, "rows" if name == "row" else f"{name} indices"):
            parts.append(text)
    return parts


def _along(hit: Mask, singular: str, many: str) -> str | None:
    """In words, which indices of an axis are hit, if there is a pattern."""
    indices = np.flatnonzero(hit)
    if hit.size < 2 or indices.size in {0, hit.size}:
        return None
    if text := _at_an_end(indices, hit.size, singular, many) or _periodic(indices, hit, many):
        return text
    if indices.size <= hit.size // 4:
        return f"only {indices.size} of {hit.size} {many}, scattered between {indices[0]} and {indices[-1]}"
    return None


def _at_an_end(indices: NDArray[np.intp], count: int, singular: str, many: str) -> str | None:
    """Words for wrong indices that are a single one, all from some index on, or all up to some index."""
    first, last = int(indices[0]), int(indices[-1])
    if indices.size == 1:
        return f"only {singular} {first}" + (", the last one" if first == count - 1 else "")
    if last == count - 1 and indices.size == count - first:
        counts = f"({indices.size} of {count})"
        return f"right up to {singular} {first - 1}, wrong from {singular} {first} on {counts}"
    if first == 0 and indices.size == last + 1:
        return f"only {many} up to {last}"
    return None


def _periodic(indices: NDArray[np.intp], hit: Mask, many: str) -> str | None:
    """Every nth index, or all but every nth: lanes, warps, float4 components, rows of a block."""
    unhit = np.flatnonzero(~hit)
    for period in PERIODS:
        enough = max(3, hit.size // period)
        if indices.size >= enough and np.unique(indices % period).size == 1:
            return f"only every {_ordinal(period)} of the {many}"
        if unhit.size >= enough and np.unique(unhit % period).size == 1:
            return f"all {many} but every {_ordinal(period)}"
    return None


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in {11, 12, 13} else 0, "th")
    return f"{number}{ending}"
