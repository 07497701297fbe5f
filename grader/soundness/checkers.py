"""Mutants of outputs: whether the checker of a problem refuses what no right kernel would write.

The reference's outputs are right. Each of them is changed, as a whole and in single elements, and the checker
is asked about that. Some changes may be right again, such as an index of another equal number, but not all of
them: an output of which the checker refuses no change is an output that it does not look at. And whatever a
kernel may write, the checker has to have an answer.

Layer: imports problems, judge and of this folder killers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.judge.correctness.checkers import CheckerError, complaint, written
from grader.problems.dtypes import poison

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from grader.problems.problem import Case, Inputs, KernelProblem
    from grader.soundness.killers import Killers

    Array = NDArray[Any]
    Arrays = Mapping[str, Array]

OF_A_GROUP = 3  # cases, the smallest ones: what a checker does not look at does not depend on sizes
ELEMENTS = 6  # of an output that are changed, each alone
MOST_ELEMENTS = 1 << 16  # of all arrays of a case


def tried(problem: KernelProblem, killers: Killers) -> tuple[bool | None, str]:
    """Whether the checker of ``problem`` refuses changed outputs, and what it does not see."""
    changed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for case, outputs in killers.written(_few(killers.cases)):
        inputs = problem.inputs(case)
        expected = problem.launcher(case).oracle(case, inputs)
        right = written(problem, outputs, expected)
        fault = _fault(problem, case, inputs, right, changed, refused)
        if fault:
            return False, fault
    if not changed:
        return None, "no case is small enough to try it"
    unseen = [name for name in changed if not refused[name]]
    if unseen:
        all_of_them = len(unseen) == len(changed)
        return (False if all_of_them else None), f"it refuses no change of {' and none of '.join(unseen)}"
    return True, f"refuses {refused.total()} of {changed.total()} changes of right outputs"


def _few(cases: Sequence[Case]) -> list[Case]:
    """The smallest cases of each group."""
    of_group: dict[str, list[Case]] = {}
    for case in sorted(cases, key=lambda case: np.prod([float(size) for size in case.sizes.values()])):
        of_group.setdefault(case.group, []).append(case)
    return [case for group in of_group.values() for case in group[:OF_A_GROUP]]


def _fault(
    problem: KernelProblem,
    case: Case,
    inputs: Inputs,
    right: Arrays,
    changed: Counter[str],
    refused: Counter[str],
) -> str:
    """What is wrong with the checker in one case; it counts the changes, and those that are refused."""
    assert problem.checker is not None
    if sum(array.size for array in right.values()) > MOST_ELEMENTS:
        return ""
    try:
        for _ in range(2):
            if (wrong := complaint(problem.checker, case, inputs, dict(right))) is not None:
                return f"it refuses the reference in {case.name}: {wrong.message}"
    except CheckerError as error:
        return str(error)
    for name, array in right.items():
        for change, other in _changes(array, case.seed):
            if other.tobytes() == array.tobytes():
                continue
            changed[name] += 1
            try:
                wrong = complaint(problem.checker, case, inputs, {**right, name: other})
            except CheckerError as error:
                return f"{error} ({change} of {name})"
            refused[name] += wrong is not None
    return ""


def _changes(array: Array, seed: int) -> Iterator[tuple[str, Array]]:
    """Wrong contents of an output, each with its name."""
    if not array.size:
        return
    random = np.random.default_rng(seed)
    size = -(-array.nbytes // 4) * 4
    nothing = poison(size, array.dtype)[: array.nbytes].view(array.dtype).reshape(array.shape)
    yield "nothing written", nothing
    yield "the elements in another order", random.permutation(array.ravel()).reshape(array.shape)
    for number in _numbers(array.dtype):
        yield f"{number} everywhere", np.full_like(array, number)
    for index in random.permutation(array.size)[:ELEMENTS]:
        for number in (*_numbers(array.dtype), _neighbour(array.flat[index])):
            other = array.copy()
            other.flat[index] = number
            yield f"{number} in one element", other


def _numbers(dtype: np.dtype[Any]) -> list[Any]:
    """Numbers that no right output has, or few have."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return [dtype.type(number) for number in {0, 1, max(-1, limits.min), limits.max, limits.min}]
    return [dtype.type(number) for number in (0, 1, -1e30 if dtype.itemsize > 2 else -1e4, np.nan, np.inf)]


def _neighbour(number: Any) -> Any:  # noqa: ANN401 - of any type of elements
    """A number a bit larger."""
    kind = type(number)
    with np.errstate(over="ignore"):
        return kind(number + kind(1))
