"""What kind of bug a wrong output looks like: small rules, tried in order, each with its own reason.

Most rules look at the pattern of wrong elements and work for every problem. A problem brings its own wrong
formulas (``Problem.bugs``), and its program of operations says what it would give with a faulty reduction
or a misread input (``faults.py``): an output that follows one of them within the tolerance is named after it.
A diagnosis is a hint for people; no points hang on it.

Layer: imports numpy, the problem's shape and the comparison.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.diagnosis.cancelling import CANCELS, cancels_near_zero
from grader.judge.correctness.diagnosis.columns import miscounted_rows, wrong_way_through_a_tile
from grader.judge.correctness.diagnosis.evidence import Evidence, best, match
from grader.judge.correctness.diagnosis.faults import matches
from grader.judge.correctness.diagnosis.numbers import (
    constant_factor,
    displaced,
    incomplete_or_half,
    low_precision,
    nearly_zero,
    overflow,
    row_factor_or_offset,
    stored_in_half,
    transposed,
    zeros,
)
from grader.judge.correctness.diagnosis.places import where
from grader.judge.correctness.diagnosis.programs import steps_of
from grader.judge.correctness.diagnosis.shares import behind_the_first_warp, incomplete_reduction
from grader.judge.correctness.diagnosis.written import (
    NOTHING_LAUNCHED,
    NOTHING_WRITTEN,
    OF_PREVIOUS_CALL,
    ROW_ENDS,
    UNCHANGED,
    all_nan,
    every_second_unwritten,
    last_columns_unwritten,
    nothing_written,
    partly_unwritten,
    result_of_previous_call,
    same_number,
    wrapped_rows,
)
from grader.problems.problem import KernelProblem, Role
from grader.records.diagnosis import NO_CAUSE, Diagnosis, as_question

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from grader.judge.correctness.comparison import Comparison
    from grader.judge.correctness.diagnosis.evidence import Array, Match
    from grader.problems.problem import Case, Inputs, Problem

    Outputs = Mapping[str, NDArray[np.generic]]
    Rules = tuple[Callable[[Evidence], Diagnosis | None], ...]

__all__ = [
    "CANCELS",
    "CHANGING",
    "NOTHING_LAUNCHED",
    "NOTHING_WRITTEN",
    "OF_PREVIOUS_CALL",
    "ROW_ENDS",
    "UNCHANGED",
    "diagnose",
]

MOST_ELEMENTS = 1 << 21  # of any output where formulas are tried: a wrong one is so in smaller cases, too
CHANGING = as_question(
    "changing",
    "two calls with the same input give different numbers",
    "is a variable or memory read before it is set, or do threads race?",
)


def diagnose(
    problem: Problem,
    case: Case,
    inputs: Inputs,
    comparisons: Mapping[str, Comparison],
    outputs: Outputs,
    previous: Outputs | None = None,
    *,
    raced: bool = False,
    again: Callable[[], Outputs] = dict,
) -> tuple[Diagnosis, ...]:
    """What is likely wrong with each wrong output; one for all where that is the same, none if all are right.

    Args:
        problem: the problem, for its parameters, its program and typical bugs.
        case: the case, for the names of its sizes.
        inputs: what the entry point was called with.
        comparisons: of every output.
        outputs: every output as it came back.
        previous: the outputs of the call before this one in the same process, if there was one.
        raced: whether a checker saw threads race, which can make any number.
        again: calls once more with the same inputs, where no formula explains an output; empty if it cannot.
    """
    evidence = _evidence(problem, inputs, comparisons, outputs, previous or {})
    if not evidence:
        return ()
    if len(evidence) == len(comparisons) and all(map(nothing_written, evidence.values())):
        return (NOTHING_WRITTEN,)
    causes = _first(_UNWRITTEN, evidence)
    with np.errstate(all="ignore"):
        if causes.keys() != evidence.keys():
            formulas: Mapping[str, Mapping[str, Array]] = {}
            if all(comparison.wrong.size < MOST_ELEMENTS for comparison in comparisons.values()):
                formulas = {text: bug(inputs) for text, bug in problem.bugs.items()}
                unexplained = _without(evidence, causes)
                causes |= best(_matches(problem, case, inputs, comparisons, unexplained, formulas))
            evidence = _with_formulas(evidence, formulas, problem.terms(inputs))
        causes |= _first(_SUMS, _without(evidence, causes))
        causes |= _changing(_without(evidence, causes), again)
        patterns = tuple(rule for rule in _PATTERNS if not (raced and rule in _LIKE_A_RACE))
        causes |= _first(patterns, _without(evidence, causes))
    placed = {
        name: replace(causes.get(name, NO_CAUSE), place=where(output_evidence, tuple(case.sizes)) or "")
        for name, output_evidence in evidence.items()
    }
    if len(set(placed.values())) == 1:
        names = tuple(placed) if len(comparisons) > 1 else ()
        return (replace(next(iter(placed.values())), outputs=names),)
    return tuple(replace(diagnosis, outputs=(name,)) for name, diagnosis in placed.items())


def _evidence(
    problem: Problem,
    inputs: Inputs,
    comparisons: Mapping[str, Comparison],
    outputs: Outputs,
    previous: Outputs,
) -> dict[str, Evidence]:
    """The evidence of each wrong output, by its name."""
    return {
        name: Evidence(
            comparison,
            outputs[name].astype(np.float64),
            outputs[name],
            inputs.arrays[name] if problem.roles.get(name) is Role.INOUT else None,
            _of_same_shape(previous.get(name), outputs[name]),
            tuple(
                array.astype(np.float64)
                for array in inputs.arrays.values()
                if array is not None and array.shape == outputs[name].shape
            ),
        )
        for name, comparison in comparisons.items()
        if not comparison.right
    }


def _of_same_shape(
    array: NDArray[np.generic] | None, other: NDArray[np.generic]
) -> NDArray[np.generic] | None:
    return array if array is not None and array.shape == other.shape else None


def _without(evidence: Mapping[str, Evidence], explained: Mapping[str, Diagnosis]) -> dict[str, Evidence]:
    return {name: output_evidence for name, output_evidence in evidence.items() if name not in explained}


def _first(rules: Rules, evidence: Mapping[str, Evidence]) -> dict[str, Diagnosis]:
    """The diagnosis of each output by the first rule that has one for it."""
    diagnoses = {
        name: next(filter(None, (rule(output_evidence) for rule in rules)), None)
        for name, output_evidence in evidence.items()
    }
    return {name: text for name, text in diagnoses.items() if text}


def _with_formulas(
    evidence: Mapping[str, Evidence],
    formulas: Mapping[str, Mapping[str, Array]],
    terms: Mapping[str, Array],
) -> dict[str, Evidence]:
    """``evidence`` with what typical bugs would make of it, and with what is added up."""
    return {
        name: replace(
            output_evidence,
            formulas={text: results[name] for text, results in formulas.items() if name in results},
            terms=terms.get(name),
        )
        for name, output_evidence in evidence.items()
    }


def _matches(
    problem: Problem,
    case: Case,
    inputs: Inputs,
    comparisons: Mapping[str, Comparison],
    evidence: Mapping[str, Evidence],
    formulas: Mapping[str, Mapping[str, Array]],
) -> list[Match]:
    """The typical bugs that outputs follow; where these leave some unexplained, also faults of any problem.

    Where nothing tells two bugs apart, the one that the problem names first comes first.
    """
    bugs = [
        replace(bug, spoilt=len(outputs) - len(bug.names))
        for rank, (text, outputs) in enumerate(formulas.items())
        if (bug := match(evidence, outputs, rank, text)) is not None
    ]
    if best(bugs).keys() == evidence.keys() or not isinstance(problem, KernelProblem):
        return bugs
    programs = [way(case) for way in (problem.unfused, *problem.other_ways)]
    right = {name: comparison for name, comparison in comparisons.items() if comparison.right}
    plain = [steps for steps in programs if steps and all(operation.plain for operation in steps)]
    return bugs + matches([steps_of(steps, inputs.arrays) for steps in plain], evidence, right, case.sizes)


def _changing(evidence: Mapping[str, Evidence], again: Callable[[], Outputs]) -> dict[str, Diagnosis]:
    """The outputs that a second call with the same inputs makes otherwise."""
    second = again() if evidence else {}
    return {
        name: CHANGING
        for name, output_evidence in evidence.items()
        if name in second and second[name].tobytes() != output_evidence.raw.tobytes()
    }


_UNWRITTEN = (
    nothing_written,
    result_of_previous_call,
    wrapped_rows,
    every_second_unwritten,
    partly_unwritten,
    last_columns_unwritten,
)
_SUMS = (miscounted_rows, wrong_way_through_a_tile)
_PATTERNS = (
    same_number,
    cancels_near_zero,
    constant_factor,
    zeros,
    nearly_zero,
    row_factor_or_offset,
    displaced,
    transposed,
    behind_the_first_warp,
    stored_in_half,
    incomplete_or_half,
    incomplete_reduction,
    all_nan,
    overflow,
    low_precision,
)
_LIKE_A_RACE = (stored_in_half, incomplete_or_half, overflow, low_precision)
