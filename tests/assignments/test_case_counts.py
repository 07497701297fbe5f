"""What is said of the number of cases."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.assignments.cases import counted, doubts
from grader.problems.contents import real
from grader.problems.formula import Range, problem

if TYPE_CHECKING:
    from grader.problems.problem import KernelProblem


def scaled() -> KernelProblem:
    return problem(
        id="scale",
        file="scale.cu",
        launcher="scale(float* y, const float* x, int n, cudaStream_t stream)",
        formula=lambda x: 2 * x,
        inputs=lambda n: {"x": real(n)},
        sizes={"n": Range(1, 1 << 20)},
    )


def test_a_usual_problem_has_cases_beyond_each_border() -> None:
    assert list(doubts(scaled())) == []
    assert "small sizes 4, " in counted(scaled())


def test_few_cases_are_told() -> None:
    usual = scaled()
    few = replace(usual, cases=lambda seed: usual.cases(seed)[:5])
    first, *further = doubts(few)
    assert first.startswith("only 5 cases: let its sizes, most or seconds be larger")
    assert further == [
        "no case has n above 32, and 1048576 is allowed: let its sizes, most or seconds be larger"
    ]
