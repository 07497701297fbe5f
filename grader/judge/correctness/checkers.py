"""Asks the checker of an assignment about outputs, and makes a result of its answer.

A checker is the teacher's code, and what a student's kernel wrote may be anything. Where the checker fails
with that, the fault is not the student's: the case is undecided, and the message is for the teacher.
"""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING, Any

import numpy as np

from grader.problems.checking import Wrong
from grader.problems.dtypes import poisoned
from grader.problems.problem import Role
from grader.records.diagnosis import Diagnosis, theme
from grader.records.errors import MachineError
from grader.records.record import ComparisonRule, OutputResult

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from numpy.typing import NDArray

    from grader.problems.problem import Case, Checker, Inputs, Problem

    Arrays = Mapping[str, NDArray[np.generic]]

_SHOWN = 3  # wrong elements that a diagnosis names
_SEVERAL = ComparisonRule(method="checker")


class CheckerError(MachineError):
    """A checker failed, or returned what is no answer; the message says where, and what to do."""


def complaint(
    checker: Checker,
    case: Case,
    inputs: Any,  # noqa: ANN401 - each kind of problem has its own
    outputs: Mapping[str, Any],
    unreadable: tuple[type[Exception], ...] = (),
) -> Wrong | None:
    """What the checker finds wrong; None if all is right.

    Args:
        checker: of the problem.
        case: that was run.
        inputs: as the kind of problem has them.
        outputs: likewise, by name.
        unreadable: the errors which mean that an output cannot be read.

    Raises:
        CheckerError: it raised another error, or its answer is neither a text nor ``Wrong``.
    """
    try:
        answer = checker(case, inputs, outputs)
    except unreadable as error:
        return Wrong(f"the output cannot be read: {error}")
    except Exception as error:  # a teacher's code may raise anything
        frames = traceback.extract_tb(error.__traceback__)[1:]
        of_checker = [frame for frame in frames if frame.filename == frames[0].filename]
        line = f"{of_checker[-1].filename}:{of_checker[-1].lineno}: " if of_checker else ""
        text = str(error).partition("\n")[0]
        raise CheckerError(
            f"{line}the assignment's checker fails in {case.name} with {type(error).__name__}: {text}. Let "
            "it return what is wrong with such an output"
        ) from error
    if isinstance(answer, Wrong):
        return _fitting(answer, case, outputs)
    if not isinstance(answer, str):
        raise CheckerError(
            f"the assignment's checker returns {answer!r:.60} in {case.name}: let it return a text, which is "
            "empty where all is right, or Wrong"
        )
    return Wrong(answer) if answer else None


def _fitting(wrong: Wrong, case: Case, outputs: Mapping[str, Any]) -> Wrong | None:
    """``wrong`` if it is of these outputs; none of its elements being wrong, it is no complaint."""
    about = f"the assignment's checker says in {case.name} that"
    if wrong.output and wrong.output not in outputs:
        names = ", ".join(outputs)
        raise CheckerError(f"{about} {wrong.output} is wrong, which is no output: there are {names}")
    if wrong.elements is None:
        return wrong
    shape = np.shape(outputs[wrong.output]) if wrong.output else None
    if np.shape(wrong.elements) != shape:
        raise CheckerError(
            f"{about} elements of {wrong.output or 'no output'} are wrong, in an array of the shape "
            f"{np.shape(wrong.elements)}: name an output, and give elements in its shape, {shape}"
        )
    return wrong if np.any(wrong.elements) else None


def written(problem: Problem, outputs: Arrays, compared: Collection[str]) -> dict[str, NDArray[np.generic]]:
    """The arrays that a launcher may write, and that are its outputs."""
    roles = problem.roles
    return {
        name: array
        for name, array in outputs.items()
        if name in compared or (roles.get(name, Role.INPUT) is not Role.INPUT and name not in problem.free)
    }


def refused(
    problem: Problem, case: Case, inputs: Inputs, outputs: Arrays, compared: Collection[str]
) -> tuple[Wrong | None, list[OutputResult]]:
    """What the checker of ``problem`` finds wrong, and the figures of the outputs that it answers for.

    Args:
        problem: with a checker.
        case: that was run.
        inputs: of the call.
        outputs: every array as it came back.
        compared: the outputs that the oracle knows, all of which are right.
    """
    assert problem.checker is not None
    arrays = written(problem, outputs, compared)
    wrong = complaint(problem.checker, case, inputs, arrays)
    alone = [name for name in arrays if name not in compared] or list(arrays)
    blamed = [] if wrong is None else [wrong.output] if wrong.output else alone
    return wrong, [
        OutputResult(
            name=name,
            max_error=0,
            allowed=0,
            bad=_count(wrong, arrays[name]) if name in blamed else 0,
            total=arrays[name].size,
            first_bad=[],
            rule=_SEVERAL,
        )
        for name in dict.fromkeys((*alone, *blamed))
    ]


def _count(wrong: Wrong | None, array: NDArray[np.generic]) -> int:
    elements = None if wrong is None else wrong.elements
    return max(1, array.size) if elements is None else int(np.count_nonzero(elements))


def described(wrong: Wrong, outputs: Arrays, count: int) -> Diagnosis:
    """What a checker found wrong in a launcher's outputs, of which there are ``count``, with examples."""
    examples = []
    if wrong.elements is not None:
        array = outputs[wrong.output]
        for index in np.argwhere(wrong.elements)[:_SHOWN]:
            name = f"{wrong.output}[{', '.join(map(str, index))}]" if index.size else wrong.output
            examples.append(f"{name} is {_number(array[tuple(index)])}")
    of_outputs = (wrong.output,) if wrong.output and count > 1 else ()
    return Diagnosis(theme(wrong.message), wrong.message, outputs=of_outputs, evidence=", ".join(examples))


def _number(element: np.generic) -> str:
    number = element.item()
    return f"{number:.9g}" if isinstance(number, float) else str(number)


def unwritten(outputs: Arrays) -> bool:
    """Whether every element of every output still holds what it was filled with before the call."""
    return any(array.size for array in outputs.values()) and all(
        bool(poisoned(array).all()) for array in outputs.values()
    )
