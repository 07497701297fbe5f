"""What kind of bug a wrong output looks like: small rules, tried in order, each with its own reason.

Rules look at the pattern of wrong elements and work for every problem. A problem brings its own wrong
formulas (``Problem.bugs``): an output that follows one of them within the tolerance is named after it. A
diagnosis is a hint for people; no points hang on it.

Layer: imports numpy, the problem's shape and the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.dtypes import poisoned
from grader.problems.problem import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from grader.judge.correctness.comparison import Comparison
    from grader.problems.problem import Case, Inputs, Problem

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]

NOTHING_WRITTEN = "nothing was written: the output still holds what was there before"
"""The whole diagnosis of a case whose outputs all are as they were; reports may fold such cases."""

UNEXPLAINED = 0.05  # share of an error that a matching formula may leave unexplained
ALMOST_ALL = 0.98  # of the elements: the rest may be hit by a second bug
FEWEST_SUMS = 4  # of fewer, some set of rows makes any by chance
PERIODS = (2, 4, 8, 16, 32, 64, 128, 256)
THREADS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)  # that may share a row
WIDTHS = (1, 4)  # elements of a load
FITTED_ROWS = 64  # enough to tell a pattern
FITTED_ELEMENTS = 1 << 14  # of those rows: every formula is tried for every number of threads
MOST_ELEMENTS = 1 << 21  # of any output where formulas are tried: a wrong one is so in smaller cases, too
WARP = 32
DISAGREEING = 0.4  # share of threads that must not follow the others before they are told apart
WIDESPREAD = 0.2  # share of wrong elements at which rounding may be the cause: it hits all alike
DIFFERENT_VALUES = 8  # fewer may be such that half precision holds by chance
RANDOM_SIGNS = 32  # wrong elements: of fewer, any error can have either sign
CHANGING = 0.3  # share of neighbours that differ in sign: a half where errors are rounding, but for chance


@dataclass(frozen=True)
class Evidence:
    """One wrong output and what it came from."""

    comparison: Comparison
    got: Array
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
    evidence = {
        name: Evidence(
            comparison,
            got[name].astype(np.float64),
            got[name],
            inputs.arrays[name] if problem.roles.get(name) is Role.INOUT else None,
            _of_same_shape((previous or {}).get(name), got[name]),
            tuple(
                array.astype(np.float64)
                for array in inputs.arrays.values()
                if array is not None and array.shape == got[name].shape
            ),
        )
        for name, comparison in comparisons.items()
        if not comparison.right
    }
    if not evidence:
        return ""
    if len(evidence) == len(comparisons) and all(map(nothing_written, evidence.values())):
        return NOTHING_WRITTEN
    explained = {name: text for name, one in evidence.items() if (text := _first(_BEFORE_FORMULAS, one))}
    large = any(one.wrong.size >= MOST_ELEMENTS for one in comparisons.values())
    with np.errstate(all="ignore"):
        formulas = {description: bug(inputs) for description, bug in problem.bugs.items() if not large}
        terms = problem.terms(inputs)
    evidence = {
        name: replace(
            one,
            formulas={text: made[name] for text, made in formulas.items() if name in made},
            terms=terms.get(name),
        )
        for name, one in evidence.items()
    }
    explained |= _named_bugs(formulas, {name: evidence[name] for name in evidence.keys() - explained.keys()})
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


def _named_bugs(
    formulas: Mapping[str, Mapping[str, Array]], evidence: Mapping[str, Evidence]
) -> dict[str, str]:
    """The typical bug that each output follows: one that explains several outputs first, then the nearest.

    Where nothing tells two of them apart, the one that its problem names first.
    """
    matches = []
    for place, (description, outputs) in enumerate(formulas.items()):
        rests = {
            name: rest
            for name, one in evidence.items()
            if name in outputs and (rest := residual(one, outputs[name])) is not None
        }
        if rests:
            unmatched = len(outputs) - len(rests)
            rest = round(max(rests.values()), 6)
            matches.append((-len(rests), unmatched, rest, place, description, tuple(rests)))
    explained: dict[str, str] = {}
    for *_, description, names in sorted(matches):
        for name in names:
            explained.setdefault(name, description)
    return explained


def residual(evidence: Evidence, formula: Array) -> float | None:
    """The share of the error that ``formula`` leaves unexplained; None if the output does not follow it.

    An output follows a formula if nearly everywhere it is nearer to that than to the right answer, and the
    formula is itself wrong where the output is. A NaN of the formula, 0 / 0 say, may be anything in the
    output, as long as the formula has numbers for most of it. Rows of nothing but NaN follow no formula: one
    NaN in a sum makes them, wherever it comes from.
    """
    if _nan_rows(evidence.got)[evidence.wrong].mean() >= 0.5:
        return None
    bound = evidence.comparison.bound
    with np.errstate(invalid="ignore"):
        distance = np.abs(evidence.got - formula)
        error = np.abs(evidence.got - evidence.expected)
        size = np.maximum(np.abs(evidence.got), np.abs(formula))  # or anything small is near a small formula
        error = np.where(np.isfinite(error), error, 0)
        near = distance <= UNEXPLAINED * np.fmin(error, size) + 4 * bound
        wrong_too = ~(np.abs(formula - evidence.expected) <= bound)
    undefined = np.isnan(formula)
    same = (evidence.got == formula) | (np.isnan(evidence.got) & undefined)
    near |= same
    if undefined[evidence.wrong].mean() < 0.5:
        same |= undefined
        near |= undefined
    if min(near[evidence.wrong].mean(), near.mean(), wrong_too[evidence.wrong].mean()) < ALMOST_ALL:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(same | (error == 0), 0.0, distance / error)[evidence.wrong]
    return float(np.nan_to_num(share, nan=1.0).clip(max=1.0).mean())


def _nan_rows(values: Array) -> Mask:
    """Which elements stand in a row that holds nothing but NaN."""
    return np.broadcast_to(np.isnan(values).all(axis=-1, keepdims=True), values.shape)


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
    """A poisoned output is NaN everywhere: += instead of = in memory that was not zeroed."""
    if (
        evidence.before is None
        and evidence.comparison.nan == evidence.wrong.size > evidence.comparison.unwritten
    ):
        return (
            "every element is NaN, which the output is filled with before the call: is it added to (+=, "
            "atomicAdd) without being set first, is something uninitialised read, is 0 divided by 0, or the "
            "root of a negative variance taken?"
        )
    return None


def partly_unwritten(evidence: Evidence) -> str | None:
    """Some elements still hold the poison or, in place, the input."""
    if evidence.before is None:
        untouched = evidence.wrong & (np.isnan(evidence.got) | poisoned(evidence.raw))
        sure = evidence.comparison.unwritten == untouched.sum() > 0
    else:
        untouched = evidence.wrong & (evidence.raw == evidence.before)
        sure = bool(untouched.sum() >= ALMOST_ALL * evidence.wrong.sum())
    if not sure or untouched.sum() < ALMOST_ALL * evidence.wrong.sum():
        return None
    return f"{int(untouched.sum())} of {untouched.size} elements were never written"


def last_columns_unwritten(evidence: Evidence) -> str | None:
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
    return (
        f"columns from {first} on were never written, and the others are wrong as well: has every element of "
        "a row a thread, and does it count in the row's sum?"
    )


# Rules for numbers that follow no formula.


def miscounted_rows(evidence: Evidence) -> str | None:
    """A sum over rows leaves out, or counts twice, the first or the last ones, of all or of every few."""
    terms, error = evidence.terms, evidence.got - evidence.expected
    if terms is None or error.size < FEWEST_SUMS or not np.isfinite(error).all():
        return None
    rows = len(terms)
    for period in (rows, *(one for one in PERIODS if one < rows)):
        few = [terms[place::period].sum(axis=0) for place in range(period)] if period < rows else terms
        first = np.cumsum(few, axis=0)[:-1]
        last = evidence.expected - first
        of = "of" if period == rows else "of every"
        for change, said in (
            (-last, f"the sum is over the first {{}} {of} {period} rows only"),
            (-first, f"the sum leaves the first {{}} {of} {period} rows out"),
            (last, f"the first {{}} {of} {period} rows count once, the others twice"),
            (first, f"the first {{}} {of} {period} rows count twice"),
        ):
            distance = np.abs(error - change) / evidence.comparison.bound
            near = (distance <= 4).mean(axis=-1) >= ALMOST_ALL
            if near.any():  # of many rows, several places are near
                return said.format(int(np.where(near, distance.sum(axis=-1), np.inf).argmin()) + 1)
    return None


def overflow(evidence: Evidence) -> str | None:
    """NaN or infinity that came from arithmetic."""
    comparison = evidence.comparison
    if comparison.nan + comparison.infinite < 0.5 * comparison.bad:
        return None
    strange = ~np.isfinite(evidence.got)
    rows = np.atleast_2d(strange & evidence.wrong).any(axis=-1)
    said = (
        f"NaN or infinity in {int(rows.sum())} of {rows.size} rows: does an exponential overflow, is 0 "
        "divided by 0, or the root of a negative variance taken (E[x^2] - E[x]^2 can round to less than 0)?"
    )
    others = [text for text, one in evidence.formulas.items() if _overlap(strange, ~np.isfinite(one))]
    return f"{said} So it would be if {', or if '.join(others)}" if others else said


def _overlap(one: Mask, other: Mask) -> bool:
    """Whether the same elements are meant, nearly all of either."""
    return bool((one & other).sum() >= ALMOST_ALL * (one | other).sum())


def stored_in_half(evidence: Evidence) -> str | None:
    """All values, of which many are wrong and few the same, are float16 or bfloat16 numbers."""
    if evidence.raw.dtype != np.float32:
        return None
    numbers = np.isfinite(evidence.got) & (evidence.got != 0)
    values = np.unique(evidence.got[numbers]).astype(np.float32)
    if values.size < DIFFERENT_VALUES or evidence.wrong[numbers].mean() < WIDESPREAD:
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
    """Small errors of either sign nearly everywhere, of the size that half precision makes.

    Those of a sum are the same way in a row, or follow its numbers, whether it is rounded or misses a few.
    """
    widespread = evidence.wrong.mean() >= WIDESPREAD and evidence.wrong.sum() >= RANDOM_SIGNS
    if np.count_nonzero(~np.isfinite(evidence.got)) or not widespread:
        return None
    error = evidence.got - evidence.expected
    scale = np.abs(evidence.expected).max(axis=-1, keepdims=True)
    balance = (error[evidence.wrong] > 0).mean()
    if (np.abs(error) / np.where(scale > 0, scale, 1.0)).max() > 0.05 or not 0.1 < balance < 0.9:
        return None
    sized = evidence.expected != 0
    level = float(np.median(np.abs(error[sized]) / np.abs(evidence.expected[sized]))) if sized.any() else 0.0
    if not 2e-5 < level <= 2e-2:
        return None
    name = "float16" if level <= 7e-4 else "bfloat16"
    if _random_signs(evidence, error > 0):
        return f"matches {name}: errors of its size nearly everywhere"
    return (
        f"errors of the size of {name} that follow the numbers of each row: does a sum over the row leave "
        f"some of them out, or is it kept in {name}?"
    )


def _random_signs(evidence: Evidence, positive: Mask) -> bool:
    """Whether the errors' signs change at random along the rows, in whatever order of their numbers."""
    shape = -1, evidence.wrong.shape[-1]
    for numbers in (evidence.expected, *evidence.alike):
        order = np.argsort(numbers.reshape(shape), axis=-1)
        sign, wrong = (
            np.take_along_axis(part.reshape(shape), order, axis=-1) for part in (positive, evidence.wrong)
        )
        both = wrong[:, 1:] & wrong[:, :-1]
        if (sign[:, 1:] != sign[:, :-1])[both].sum() < CHANGING * both.sum():
            return False
    return True


def displaced(evidence: Evidence) -> str | None:
    """From some row or column on, what belongs to others stands there."""
    for axis, many in ((evidence.wrong.ndim - 1, "columns"), (0, "rows")):
        others = tuple(other for other in range(evidence.wrong.ndim) if other != axis)
        places = np.flatnonzero(evidence.wrong.any(axis=others))
        first, count = int(places[0]), evidence.wrong.shape[axis]
        for shift in sorted({first, 1, -1} - {0}):
            target = np.arange(first, count if shift > 0 else count + shift)
            source = target % first if shift == first else target - shift
            if target.size < 4 or source.min() < 0:
                continue
            got, theirs, bound = (
                np.take(part, index, axis)
                for part, index in (
                    (evidence.got, target),
                    (evidence.expected, source),
                    (evidence.comparison.bound, source),
                )
            )
            wrong = np.take(evidence.wrong, target, axis)
            with np.errstate(invalid="ignore"):
                theirs_there = np.abs(got - theirs) <= 4 * bound
            if wrong.mean() > 0.5 and theirs_there[wrong].mean() >= ALMOST_ALL:
                way = f"{abs(shift)} {many} {'before' if shift > 0 else 'behind'}"
                return f"{many} from {first} on hold what belongs {way}"
    return None


def incomplete_reduction(evidence: Evidence) -> str | None:
    """Elements of the same thread, or all of a row, are off by a common share of a typical bug.

    A row that is divided by a part of its sum is off by a factor; one from which a part of its sum is
    subtracted is on the way from the right answer to the formula without the sum. If every thread has a part
    of its own, the share is common to the columns that a thread owns.
    """
    shape = -1, evidence.wrong.shape[-1]
    got, expected, bound = (
        part.reshape(shape) for part in (evidence.got, evidence.expected, evidence.comparison.bound)
    )
    wrong = evidence.wrong.reshape(shape)
    rows = np.flatnonzero(wrong.any(axis=-1) & np.isfinite(got).all(axis=-1))
    rows = rows[: max(1, min(FITTED_ROWS, FITTED_ELEMENTS // shape[1]))]
    if evidence.wrong.ndim == 1 or shape[1] < 8 or rows.size == 0:
        return None
    error, slack = (got - expected)[rows], 4 * bound[rows]
    directions = {"": expected[rows]}
    directions |= {
        text: formula.reshape(shape)[rows] - expected[rows] for text, formula in evidence.formulas.items()
    }
    # What is 0 fits any factor, so it does not count.
    sizes = {text: np.count_nonzero(one) for text, one in directions.items() if np.isfinite(one).all()}
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


def _disagreement(threads: int, width: int, text: str) -> str:
    likeness = f' by a part of what "{text}" would make' if text else " by a common factor"
    if threads == 1:
        return f"each row is off{likeness}: is a sum or maximum of the row incomplete?"
    return (
        f"elements {threads * width} columns apart are off{likeness}, others by another: has each thread a "
        "sum or maximum of its own? A reduction over threads is missing or stops early"
    )


def behind_the_first_warp(evidence: Evidence) -> str | None:
    """Everything is right up to the columns of the first warp, and nothing behind them."""
    columns = evidence.wrong.reshape(-1, evidence.wrong.shape[-1])
    columns = columns[columns.any(axis=-1)]
    for first in (WARP * width for width in WIDTHS if WARP * width < columns.shape[1]):
        if not columns[:, :first].any() and columns[:, first:].mean() >= ALMOST_ALL:
            return (
                f"the first {first} columns, those of one warp, are right, the others wrong: does only "
                "the first warp get the result of a reduction? Hand it to every thread, through shared memory"
            )
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


_BEFORE_FORMULAS = (nothing_written, result_of_previous_call, partly_unwritten, last_columns_unwritten)
_AFTER_FORMULAS = (
    miscounted_rows,
    all_nan,
    overflow,
    stored_in_half,
    constant_factor,
    zeros,
    low_precision,
    row_factor_or_offset,
    displaced,
    behind_the_first_warp,
    incomplete_reduction,
)
