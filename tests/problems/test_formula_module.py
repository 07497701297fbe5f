"""Module problems from one formula: their parameters, outputs and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from grader.problems.contents import Number, real
from grader.problems.formula import FormulaError, Range
from grader.problems.formula_module import module
from grader.problems.grid import MAGNITUDES
from grader.problems.problem import Role

if TYPE_CHECKING:
    from grader.problems.module import ModuleProblem


def problem(**changes: Any) -> ModuleProblem:  # noqa: ANN401 - of any argument
    usual: dict[str, Any] = {
        "id": "scaled",
        "file": "submission.py",
        "function": "custom_kernel",
        "arguments": {"x": "float32", "a": float, "n": int, "y": "float32"},
        "results": {"y": "float32", "z": "float32"},
        "formula": lambda x, a: (a * x, x + 1),
        "inputs": lambda n: {"x": real(n), "a": 0.1},
        "sizes": {"n": Range(1, 1 << 10)},
    }
    return module(**{**usual, **changes})


def test_results_that_are_no_arguments_are_made() -> None:
    scaled = problem()
    assert (scaled.passed, scaled.made, scaled.outputs) == (("x", "a", "n", "y"), ("z",), ("y", "z"))
    case = scaled.cases(1)[0]
    inputs = scaled.inputs(case)
    assert set(inputs.outputs) == {"y", "z"}
    assert inputs.scalars["a"] == 0.1  # as Python has it, not rounded to float32
    assert set(scaled.oracle(case, inputs)) == {"y", "z"}


def test_a_result_that_the_inputs_hold_is_in_place() -> None:
    added = problem(
        arguments={"x": "float32"},
        results={"x": "float32"},
        formula=lambda x: x + 1,
        inputs=lambda n: {"x": real(n)},
    )
    assert added.roles == {"x": Role.INOUT}
    assert (added.made, added.outputs) == ((), ("x",))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"results": {}}, "results is empty"),
        ({"arguments": {"x": "single"}, "results": {"y": "float32"}}, "x is 'single': a tensor is 'float16'"),
        ({"arguments": {"x": "float32", "a": str}}, "a number is int, float, bool"),
        ({"results": {"z": "float32", "y": "float32"}}, "results names arguments that are filled first"),
        (
            {"results": {"y": "float16", "z": "float32"}},
            "y is float32 as an argument and float16 as a result",
        ),
        ({"inputs": lambda n: {"x": real(n)}}, "a is no size, and inputs has no value for it"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(FormulaError, match=said):
        problem(**changes)


def test_the_baseline_of_a_case_has_the_numbers_of_that_case() -> None:
    shifted = problem(
        arguments={"x": "float32", "a": float},
        results={"y": "float32"},
        formula=lambda x, a: x + a,
        inputs=lambda n: {"x": real(n), "a": Number(0.5, -4, 4)},
    )
    cases = [case for case in shifted.cases(1) if case.group == MAGNITUDES]
    numbers = {shifted.inputs(case).scalars["a"] for case in cases}
    assert len(numbers) > 1
    for case in cases:
        (operation,) = shifted.unfused(case)
        assert operation.inputs[1] == shifted.inputs(case).scalars["a"]
