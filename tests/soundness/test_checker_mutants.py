"""A checker that does not look at an output, or that fails with one, is not sound."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from grader.problems.checking import Wrong
from grader.problems.contents import integers
from grader.problems.formula import Range, problem
from grader.soundness.checkers import tried

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from grader.problems.problem import Case, Checker, Inputs, KernelProblem

    Outputs = dict[str, NDArray[Any]]


def of(check: Callable[[Case, Inputs, Outputs], str | Wrong]) -> tuple[bool | None, str]:
    """What the soundness check says of a checker of the largest number and of its place."""
    checked = problem(
        id="argmax",
        file="argmax.cu",
        launcher="launch_argmax(int* largest, int* place, const int* x, int n, cudaStream_t stream)",
        check=check,
        inputs=lambda n: {"x": integers(0, 99, n)},
        outputs=lambda: {"largest": (1,), "place": (1,)},
        sizes={"n": Range(1, 300)},
    )
    return tried(checked, Reference(checked))  # type: ignore[arg-type]


class Reference(SimpleNamespace):
    """A right kernel."""

    def __init__(self, problem: KernelProblem) -> None:
        super().__init__(problem=problem, cases=problem.cases(1))

    def written(self, cases: Iterable[Case]) -> Iterator[tuple[Case, Outputs]]:
        for case in cases:
            x = self.problem.inputs(case).arrays["x"]
            largest, place = np.array([x.max()], np.int32), np.array([x.argmax()], np.int32)
            yield case, {"x": x, "largest": largest, "place": place}


def both(_: Case, inputs: Inputs, outputs: Outputs) -> str | Wrong:
    x, place = inputs.arrays["x"], outputs["place"]
    assert x is not None
    if not 0 <= place[0] < x.size:
        return Wrong("the place lies outside", "place")
    right = x[place[0]] == x.max() == outputs["largest"][0]
    return "" if right else "another number is larger"


def place_is_used_as_it_is(_: Case, inputs: Inputs, outputs: Outputs) -> str:
    x = inputs.arrays["x"]
    assert x is not None
    return "" if x[outputs["place"][0]] == x.max() else "another number is larger"


def only_the_number(_: Case, inputs: Inputs, outputs: Outputs) -> str:
    x = inputs.arrays["x"]
    assert x is not None
    return "" if outputs["largest"][0] == x.max() else "another number is larger"


@pytest.mark.parametrize(
    ("check", "sound", "text"),
    [
        (both, True, "changes of right outputs"),
        (lambda *_: "", False, "it refuses no change of largest and none of place"),
        (only_the_number, None, "it refuses no change of place"),
        (lambda *_: "never", False, "it refuses the reference in"),
        (place_is_used_as_it_is, False, "with IndexError: index"),
    ],
)
def test_checkers(check: Checker, sound: bool | None, text: str) -> None:
    answer, words = of(check)
    assert answer is sound, words
    assert text in words
