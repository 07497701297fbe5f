"""What is said of results near 0 whose digits a formula loses, and of other errors there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from grader.judge.correctness.comparison import compare
from grader.judge.correctness.diagnosis import CANCELS, diagnose
from grader.problems.contents import NORMAL, TINY, real
from grader.problems.formula import Range, problem
from grader.records.diagnosis import in_words

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from torch import Tensor

    from grader.problems.problem import KernelProblem

    Floats = NDArray[np.float32]
    Formula = Callable[[Tensor], Tensor]


def elementwise(formula: Formula, *also: Formula) -> KernelProblem:
    return problem(
        id="elementwise",
        file="elementwise.cu",
        launcher="launch(float* y, const float* x, int n, cudaStream_t stream)",
        formula=formula,
        inputs=lambda n: {"x": real(n)},
        sizes={"n": Range(1, 1 << 24)},
        also=also,
    )


def told(known: KernelProblem, distribution: str, kernel: Callable[[Floats], NDArray[np.generic]]) -> str:
    """The diagnosis of a kernel on 5,000 numbers."""
    assert known.space is not None
    case = known.space.case("a group", {"n": 5000}, distribution, 3)
    given = known.inputs(case)
    x = given.arrays["x"]
    assert x is not None
    with np.errstate(all="ignore"):
        got = {"y": kernel(x.astype(np.float32)).astype(np.float32)}
    compared = {name: compare(name, one, got[name]) for name, one in known.oracle(case, given).items()}
    return in_words(diagnose(known, case, given, compared, got))


def elu(x: Tensor) -> Tensor:
    return torch.nn.functional.elu(x)


def tanh(x: Tensor) -> Tensor:
    return torch.tanh(x)


def subtracted(x: Floats) -> Floats:
    return np.where(x > 0, x, np.exp(x) - np.float32(1))


def quotient(x: Floats) -> Floats:
    return (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))


ELU, TANH = elementwise(elu), elementwise(tanh)
LOSING: dict[str, tuple[KernelProblem, Callable[[Floats], Floats]]] = {
    "elu": (ELU, subtracted),
    "tanh": (TANH, quotient),
    "log1p": (elementwise(lambda x: torch.log1p(x.abs())), lambda x: np.log(np.float32(1) + np.abs(x))),
}


@pytest.mark.parametrize("distribution", [NORMAL, TINY])
@pytest.mark.parametrize("name", LOSING)
def test_a_formula_that_cancels_is_named(name: str, distribution: str) -> None:
    assert told(LOSING[name][0], distribution, LOSING[name][1]).startswith(CANCELS.cause)


@pytest.mark.parametrize(
    ("known", "kernel"),
    [
        (
            elementwise(elu, lambda x: torch.where(x > 0, x, torch.exp(x) - 1)),
            subtracted,
        ),
        (
            elementwise(
                tanh,
                lambda x: (torch.exp(x) - torch.exp(-x)) / (torch.exp(x) + torch.exp(-x)),
            ),
            quotient,
        ),
    ],
    ids=["elu", "tanh"],
)
@pytest.mark.parametrize("distribution", [NORMAL, TINY])
def test_the_bound_allows_it_where_the_problem_does(
    known: KernelProblem, kernel: Callable[[Floats], Floats], distribution: str
) -> None:
    assert not told(known, distribution, kernel)


def first_half(y: Floats) -> Floats:
    y[y.size // 2 :] = 0
    return y


def dropped(y: Floats) -> Floats:
    y[7] = 0
    return y


@pytest.mark.parametrize(
    ("distribution", "kernel"),
    [
        (TINY, lambda x: first_half(np.tanh(x))),
        (TINY, lambda x: dropped(np.tanh(x))),
        (TINY, lambda x: np.tanh(x) * np.float32(1.01)),
        (NORMAL, lambda x: first_half(np.tanh(x))),
        (NORMAL, lambda x: dropped(np.tanh(x))),
        (NORMAL, lambda x: np.tanh(x).astype(np.float16)),
        (NORMAL, lambda x: np.tanh(x) * np.float32(1 + 1e-5)),
        (NORMAL, lambda x: np.tanh(x) + np.float32(1e-5)),
        (NORMAL, lambda x: np.where(np.abs(x) < 1e-3, np.nan, np.tanh(x))),
    ],
)
def test_other_errors_near_0_are_not(distribution: str, kernel: Callable[[Floats], Floats]) -> None:
    said = told(TANH, distribution, kernel)
    assert said
    assert CANCELS.cause not in said
