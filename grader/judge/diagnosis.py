"""What kind of bug a wrong output looks like: small rules, tried in order, each with its own reason.

Rules look at the pattern of wrong elements and work for every problem. A problem brings its own wrong
formulas (``Problem.bugs``): an output that follows one of them within the tolerance is named after it. A
diagnosis is a hint for people; no points hang on it.

Layer: imports numpy, the problem's shape and the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.problem import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from grader.judge.comparison import Comparison
    from grader.problems.problem import Case, Inputs, Problem

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

NOTHING_WRITTEN = "nothing was written: the output still holds what was there before"
"""The whole diagnosis of a case whose outputs all are as they were; reports may fold such cases."""

UNEXPLAINED = 0.05  # share of an error that a matching formula may leave unexplained
ALMOST_ALL = 0.98  # of the elements: the rest may be hit by a second bug
PERIODS = (2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Evidence:
    """One wrong output and what it came from."""

    comparison: Comparison
    got: Array
    raw: NDArray[np.generic]
    before: NDArray[np.generic] | None  # of an output that is also an input
    previous: NDArray[np.generic] | None  # what the call before this one returned, if it had the same shape

    @property
    def wrong(self) -> Mask:
        """Which elements are wrong."""
        return self.comparison.wrong

    @property
    def expected(self) -> Array:
        """What would be right."""
        return self.comparison.expected


def diagnose(
    problem: Problem,
    case: Case,
    inputs: Inputs,
    comparisons: Mapping[str, Comparison],
    got: Mapping[str, NDArray[np.generic]],
    previous: Mapping[str, NDArray[np.generic]] | None = None,
) -> str:
    """A sentence per wrong output on what is likely wrong; "" if all are right.

    Args:
        problem: the problem, for its parameters and typical bugs.
        case: the case, for the names of its sizes.
        inputs: what the entry point was called with.
        comparisons: of every output.
        got: every output as it came back.
        previous: the outputs of the call before this one in the same process, if there was one.
    """
    roles = {parameter.name: getattr(parameter, "role", None) for parameter in problem.parameters}
    evidence = {
        name: Evidence(
            comparison,
            got[name].astype(np.float64),
            got[name],
            inputs.arrays[name] if roles[name] is Role.INOUT else None,
            _of_same_shape((previous or {}).get(name), got[name]),
        )
        for name, comparison in comparisons.items()
        if not comparison.right
    }
    if not evidence:
        return ""
    if len(evidence) == len(comparisons) and all(map(nothing_written, evidence.values())):
        return NOTHING_WRITTEN
    explained = {name: text for name, one in evidence.items() if (text := _first(_BEFORE_FORMULAS, one))}
    explained |= _named_bugs(
        problem, inputs, {name: evidence[name] for name in evidence.keys() - explained.keys()}
    )
    sentences = {}
    for name, one in evidence.items():
        cause = explained.get(name) or _first(_AFTER_FORMULAS, one)
        place = where(one, tuple(case.sizes))
        sentences[name] = "; ".join(part for part in (cause, place) if part) or "no known pattern"
    if len(set(sentences.values())) == 1 and len(sentences) > 1:
        return f"{' and '.join(sentences)}: {next(iter(sentences.values()))}"
    if len(comparisons) == 1:
        return next(iter(sentences.values()))
    return ". ".join(f"{name}: {text}" for name, text in sentences.items())


def _of_same_shape(
    array: NDArray[np.generic] | None, other: NDArray[np.generic]
) -> NDArray[np.generic] | None:
    return array if array is not None and array.shape == other.shape else None


def _first(rules: tuple[Callable[[Evidence], str | None], ...], evidence: Evidence) -> str | None:
    return next((text for rule in rules if (text := rule(evidence))), None)


def _named_bugs(problem: Problem, inputs: Inputs, evidence: Mapping[str, Evidence]) -> dict[str, str]:
    """The typical bug that each output follows: one that explains several outputs first, then the nearest."""
    matches = []
    for description, formula in problem.bugs.items() if evidence else ():
        with np.errstate(all="ignore"):
            outputs = formula(inputs)
        rests = {
            name: rest
            for name, one in evidence.items()
            if name in outputs and (rest := residual(one, outputs[name])) is not None
        }
        if rests:
            matches.append((-len(rests), max(rests.values()), description, tuple(rests)))
    explained: dict[str, str] = {}
    for _, _, description, names in sorted(matches):
        for name in names:
            explained.setdefault(name, description)
    return explained


def residual(evidence: Evidence, formula: Array) -> float | None:
    """The share of the error that ``formula`` leaves unexplained; None if the output does not follow it.

    An output follows a formula if nearly everywhere it is nearer to that than to the right answer, and the
    formula is itself wrong where the output is.
    """
    bound = evidence.comparison.bound
    with np.errstate(invalid="ignore"):
        distance = np.abs(evidence.got - formula)
        error = np.abs(evidence.got - evidence.expected)
        error = np.where(np.isfinite(error), error, 0)
        near = distance <= UNEXPLAINED * error + 4 * bound
        wrong_too = ~(np.abs(formula - evidence.expected) <= bound)
    same = (evidence.got == formula) | (np.isnan(evidence.got) & np.isnan(formula))
    near |= same
    if min(near[evidence.wrong].mean(), near.mean(), wrong_too[evidence.wrong].mean()) < ALMOST_ALL:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(same | (error == 0), 0.0, distance / error)[evidence.wrong]
    return float(np.median(share))


# Rules that must speak before a formula may: what was not written follows no formula.


def nothing_written(evidence: Evidence) -> str | None:
    """All elements still hold the poison, or, in place, the input."""
    same = (
        evidence.comparison.unwritten == evidence.wrong.sum() == evidence.wrong.size
        if evidence.before is None
        else np.array_equal(evidence.before, evidence.raw)
    )
    return NOTHING_WRITTEN if same else None


def result_of_previous_call(evidence: Evidence) -> str | None:
    """All elements are what the call before returned."""
    if evidence.previous is None or not np.array_equal(evidence.previous, evidence.raw):
        return None
    return "this is the result of the call before: is something kept between calls (static, cached pointer)?"


def all_nan(evidence: Evidence) -> str | None:
    """A poisoned output is NaN everywhere: += instead of = in memory that nobody zeroed."""
    if (
        evidence.before is None
        and evidence.comparison.nan == evidence.wrong.size > evidence.comparison.unwritten
    ):
        return (
            "every element is NaN, which the output is filled with before the call: is it added to (+=, "
            "atomicAdd) without being set first, or is something uninitialised read?"
        )
    return None


def partly_unwritten(evidence: Evidence) -> str | None:
    """Some elements still hold the poison or, in place, the input."""
    if evidence.before is None:
        untouched = evidence.wrong & np.isnan(evidence.got)
        sure = evidence.comparison.unwritten == untouched.sum() > 0
    else:
        untouched = evidence.wrong & (evidence.raw == evidence.before)
        sure = bool(untouched.sum() >= ALMOST_ALL * evidence.wrong.sum())
    if not sure or untouched.sum() < ALMOST_ALL * evidence.wrong.sum():
        return None
    return f"{int(untouched.sum())} of {untouched.size} elements were never written"


# Rules for numbers that follow no formula.


def overflow(evidence: Evidence) -> str | None:
    """NaN or infinity that came from arithmetic."""
    comparison = evidence.comparison
    if comparison.nan + comparison.infinite < 0.5 * comparison.bad:
        return None
    rows = np.atleast_2d(~np.isfinite(evidence.got) & evidence.wrong).any(axis=-1)
    return (
        f"NaN or infinity in {int(rows.sum())} of {rows.size} rows: does an exponential overflow, is 0 "
        "divided by 0, or the root of a negative variance taken (E[x^2] - E[x]^2 can round to less than 0)?"
    )


def stored_in_half(evidence: Evidence) -> str | None:
    """All values are float16 or bfloat16 numbers."""
    values = evidence.got[np.isfinite(evidence.got) & (evidence.got != 0)].astype(np.float32)
    if values.size < 8:
        return None
    if not (values.view(np.uint32) & np.uint32(0xFFFF)).any():  # first: most of these fit float16 as well
        return "matches bfloat16: every value is one that bfloat16 can hold"
    with np.errstate(over="ignore"):
        if np.array_equal(values.astype(np.float16).astype(np.float32), values):
            return "matches float16: every value is one that float16 can hold"
    return None


def constant_factor(evidence: Evidence) -> str | None:
    """Everything is right but for one factor."""
    usable = np.isfinite(evidence.got) & (np.abs(evidence.expected) > 4 * evidence.comparison.bound)
    if usable.sum() < 8 or (evidence.wrong & usable).sum() < ALMOST_ALL * usable.sum():
        return None
    ratio = evidence.got[usable] / evidence.expected[usable]
    middle = float(np.median(ratio))
    steady = np.abs(ratio - middle) <= 1e-3 * abs(middle)
    if middle == 0 or abs(middle - 1) < 1e-3 or steady.mean() < ALMOST_ALL:
        return None
    return f"every element is off by the same factor of {middle:.6g}"


def row_factor_or_offset(evidence: Evidence) -> str | None:
    """Each row is right but for its own factor or its own offset: a wrong row sum, mean or maximum."""
    got, expected = np.atleast_2d(evidence.got), np.atleast_2d(evidence.expected)
    wrong = np.atleast_2d(evidence.wrong)
    rows = wrong.any(axis=-1) & np.isfinite(got).all(axis=-1)
    if got.shape[-1] < 4 or rows.sum() < 2 or evidence.got.ndim == 1:
        return None
    got, expected = got[rows], expected[rows]
    error = got - expected
    size = np.abs(error).mean(axis=-1)
    if (error.std(axis=-1) <= UNEXPLAINED * size).mean() >= ALMOST_ALL:
        return "each row is off by a constant of its own: is a row sum, mean or maximum wrong?"
    weight = (expected**2).sum(axis=-1)
    factor = (got * expected).sum(axis=-1) / np.where(weight > 0, weight, 1.0)
    rest = np.abs(got - factor[:, None] * expected).mean(axis=-1)
    if (rest <= UNEXPLAINED * size).mean() >= ALMOST_ALL:
        return "each row is off by a factor of its own: is the sum that it is divided by wrong?"
    return None


def low_precision(evidence: Evidence) -> str | None:
    """Small errors of either sign nearly everywhere, of the size that half precision makes."""
    if np.count_nonzero(~np.isfinite(evidence.got)) or evidence.wrong.mean() < 0.2:
        return None
    error = evidence.got - evidence.expected
    scale = np.abs(evidence.expected).max(axis=-1, keepdims=True)
    relative = np.abs(error) / np.where(scale > 0, scale, 1.0)
    balance = (error[evidence.wrong] > 0).mean()
    level = float(np.quantile(relative, 0.9))
    if relative.max() > 0.05 or not 0.1 < balance < 0.9:
        return None
    if 2e-5 < level <= 1e-3:
        return "matches float16: errors of its size nearly everywhere"
    if 1e-3 < level <= 1e-2:
        return "matches bfloat16: errors of its size nearly everywhere"
    return None


def zeros(evidence: Evidence) -> str | None:
    """Wrong elements are zero."""
    if (evidence.got[evidence.wrong] == 0).mean() >= ALMOST_ALL:
        return "the wrong elements are zero"
    return None


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


def _along(hit: Mask, one: str, many: str) -> str | None:
    """In words, which indices of an axis are hit, if there is a pattern."""
    places = np.flatnonzero(hit)
    if hit.size < 2 or places.size in {0, hit.size}:
        return None
    if text := _at_an_end(places, hit.size, one, many) or _periodic(places, hit, many):
        return text
    if places.size <= hit.size // 4:
        return f"only {places.size} of {hit.size} {many}, scattered between {places[0]} and {places[-1]}"
    return None


def _at_an_end(places: NDArray[np.intp], count: int, one: str, many: str) -> str | None:
    """One index, all from one on, or all up to one."""
    first, last = int(places[0]), int(places[-1])
    if places.size == 1:
        return f"only {one} {first}" + (", the last one" if first == count - 1 else "")
    if last == count - 1 and places.size == count - first:
        return f"right up to {one} {first - 1}, wrong from {one} {first} on ({places.size} of {count})"
    if first == 0 and places.size == last + 1:
        return f"only {many} up to {last}"
    return None


def _periodic(places: NDArray[np.intp], hit: Mask, many: str) -> str | None:
    """Every nth index, or all but every nth: lanes, warps, float4 components, rows of a block."""
    others = np.flatnonzero(~hit)
    for period in PERIODS:
        enough = max(3, hit.size // period)
        if places.size >= enough and np.unique(places % period).size == 1:
            return f"only every {_ordinal(period)} of the {many}"
        if others.size >= enough and np.unique(others % period).size == 1:
            return f"all {many} but every {_ordinal(period)}"
    return None


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in {11, 12, 13} else 0, "th")
    return f"{number}{ending}"


_BEFORE_FORMULAS = (nothing_written, result_of_previous_call, partly_unwritten)
_AFTER_FORMULAS = (
    all_nan,
    overflow,
    stored_in_half,
    constant_factor,
    zeros,
    low_precision,
    row_factor_or_offset,
)
