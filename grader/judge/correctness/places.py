"""Compares large outputs at some places: the first ones, those in the middle, the last ones, and drawn ones.

What is right there is worked out from the inputs that these places need (``Slices``). Outputs that are right
there, and of which every element was written, are taken to be right. Others are compared everywhere: if they
are large, range by range, because what the oracle works on then stays in the caches of the processor. Only an
output that is wrong somewhere is compared as a whole, which also says what is wrong with it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from grader.judge.correctness.comparison import compare
from grader.problems.dtypes import poisoned
from grader.problems.problem import KernelProblem, Role, of_slices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from grader.judge.correctness.comparison import Comparison
    from grader.problems.problem import Case, Inputs, Problem, Slices

    Arrays = Mapping[str, NDArray[np.generic]]

ELEMENTS = 1 << 11  # of the outputs at a place
DRAWN = 2  # places
SAVED = 2  # times as many slices as there are at all places, or all are compared
RANGE = 1 << 15  # elements of the outputs of a range, some hundred KiB in float64,
LARGE = 1 << 20  # of outputs with at least so many elements; the expectation of smaller ones is remembered


def right_at_places(
    problem: Problem, case: Case, inputs: Inputs, outputs: Arrays
) -> Mapping[str, Comparison] | None:
    """The worst comparison of each output at the places, or in ranges everywhere.

    Large outputs are compared in ranges if they fall apart into few slices, or if something was not written.

    None if the outputs have to be compared as a whole: there are few elements, or some of them are wrong.

    Args:
        problem: whose oracle and slices are taken.
        case: of the inputs; its seed draws places.
        inputs: of the call.
        outputs: every output as it came back.
    """
    if not isinstance(problem, KernelProblem) or not problem.slices:
        return None
    written = all(_written(problem, inputs, name, array) for name, array in outputs.items())
    windows = _parts(problem, case, {name: array.size for name, array in outputs.items()}, written=written)
    if windows is None:
        return None
    # What is right everywhere for a submission that wrote too little would take much to remember.
    expected_in = problem.expected_in if written else partial(of_slices, problem.oracle)
    worst: dict[str, Comparison] = {}
    for slices, parts in windows.items():
        for first, length in parts:
            for name, right in expected_in(case, inputs, slices, first, length).items():
                output = outputs[name].reshape(slices.count(case), -1)[first : first + length]
                compared = compare(name, right, output.reshape(right.candidates[0].expected.shape))
                if not compared.right:
                    return None
                if name not in worst or _share(compared) > _share(worst[name]):
                    worst[name] = compared
    return {name: replace(compared, total=outputs[name].size) for name, compared in worst.items()}


def work_out(problem: Problem, case: Case, inputs: Inputs) -> None:
    """Let ``problem`` remember what ``right_at_places`` will ask it where every output was written."""
    if not isinstance(problem, KernelProblem) or not problem.slices:
        return
    sizes = {name: array.size for name, array in inputs.arrays.items() if array is not None}
    sizes |= {name: prod(shape) for name, shape in inputs.outputs.items()}
    for slices, parts in (_parts(problem, case, sizes, written=True) or {}).items():
        for first, length in parts:
            problem.expected_in(case, inputs, slices, first, length)


def _parts(
    problem: KernelProblem, case: Case, sizes: Mapping[str, int], *, written: bool
) -> Mapping[Slices, list[tuple[int, int]]] | None:
    """First and number of the slices of each part that is compared; None if outputs are compared as a whole.

    ``sizes`` are the elements of each array, and ``written`` says whether nothing was left as it was.
    """
    windows = {slices: _windows(case, slices, sizes) if written else [] for slices in problem.slices}
    if not all(windows.values()):
        if sum(sizes.values()) < LARGE:
            return None
        windows = {slices: parts or _ranges(case, slices, sizes) for slices, parts in windows.items()}
    return windows


def _windows(case: Case, slices: Slices, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """First and number of the slices at each place; none where they are not much fewer than all."""
    count = slices.count(case)
    elements = sum(sizes[name] for name in slices.outputs)
    length = max(1, ELEMENTS * count // max(1, elements))
    if count < SAVED * (3 + DRAWN) * (length + 2 * slices.halo(case)):
        return []
    drawn = np.random.default_rng(case.seed).integers(count - length + 1, size=DRAWN)
    return [(int(first), length) for first in (0, (count - length) // 2, count - length, *drawn)]


def _ranges(case: Case, slices: Slices, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
    """First and number of the slices of each range, of all slices."""
    count = slices.count(case)
    length = max(1, RANGE * count // max(1, sum(sizes[name] for name in slices.outputs)))
    return [(first, min(length, count - first)) for first in range(0, count, length)]


def _written(problem: KernelProblem, inputs: Inputs, name: str, array: NDArray[np.generic]) -> bool:
    """Whether an output has no poison left, and no row of an array in place is as it was."""
    role, before = problem.roles[name], inputs.arrays.get(name)
    if role is Role.OUTPUT:
        return not poisoned(array).any()
    if role is Role.INPUT or before is None or prod(array.shape[:-1]) == 1:
        return True
    return not (array == before).all(axis=-1).any()


def _share(comparison: Comparison) -> float:
    """How much of the allowed error the worst element has."""
    return float(comparison.max_error) / comparison.allowed if comparison.allowed else 0.0
