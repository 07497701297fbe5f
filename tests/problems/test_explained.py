"""Whatever a teacher's formula or inputs raise is one line that says what to write instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch

from grader.problems.contents import indices, real
from grader.problems.formula import FormulaError, Range, problem

if TYPE_CHECKING:
    from collections.abc import Callable

INTEGERS = "f(int* out, const int* x, int n, int k, cudaStream_t stream)"
NUMBERS = "f(float* out, const float* x, int n, int k, cudaStream_t stream)"


def made(formula: Callable[..., Any], launcher: str = NUMBERS, **changes: Any) -> None:  # noqa: ANN401
    content = indices if launcher is INTEGERS else real
    inputs = (lambda n: {"x": indices(10, n)}) if content is indices else (lambda n: {"x": real(n)})
    parts: dict[str, Any] = {"sizes": {"n": Range(1, 1000), "k": Range(1, 32)}, "inputs": inputs, **changes}
    problem(id="f", file="f.cu", launcher=launcher, formula=formula, **parts)


@pytest.mark.parametrize(
    ("launcher", "formula", "told"),
    [
        (
            INTEGERS,
            lambda x: torch.bincount(x, minlength=10),
            "depends on the inputs' numbers. Write it with",
        ),
        (INTEGERS, lambda x: torch.where(x.byte(), x, 0), "no bool tensor. Write mask.bool"),
        (INTEGERS, lambda x: x[x.byte()], "no bool tensor. Write mask.bool"),
        (INTEGERS, lambda x: x.nonzero()[:, 0], "depends on the inputs' numbers. Write it with"),
        (NUMBERS, lambda x: x * x[0].item(), "it asks for one number of an array .* Write torch.where"),
        (NUMBERS, lambda x: x if x.sum() > 0 else -x, "it asks for one number of an array"),
        (NUMBERS, lambda x, k: torch.topk(x, k).values, "an index or a count is larger"),
        (NUMBERS, lambda x: x * x[5], "an index or a count is larger than the axis"),
        (NUMBERS, lambda x: x + torch.zeros(3), r"arrays do not fit together\. Compare their shapes"),
        (NUMBERS, lambda x: x.squared(), "AttributeError: 'Tensor' object has no attribute 'squared'"),
    ],
)
def test_what_a_formula_raises_is_explained(launcher: str, formula: Callable[..., Any], told: str) -> None:
    with pytest.raises(FormulaError, match=rf"^the formula fails with n = \d+.*{told}") as raised:
        made(formula, launcher)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        (lambda n: {"x": real(n // 0)}, "inputs fails with n = 1, k = 1: ZeroDivisionError"),
        (lambda m: {"x": real(m)}, "inputs asks for m, which is no size. Add it to sizes, which has n, k"),
        (lambda n: {"x": [1] * n}, "inputs has for x neither a content, as real"),
    ],
)
def test_wrong_inputs_are_explained(inputs: Callable[..., Any], told: str) -> None:
    with pytest.raises(FormulaError, match=told):
        made(lambda x: 2 * x, inputs=inputs)


def test_a_function_of_pytorch_alone_is_no_formula() -> None:
    with pytest.raises(FormulaError, match="the formula has no names of arguments that can be seen: write"):
        made(torch.conv2d)


@pytest.mark.parametrize("check", [lambda _outputs: "", lambda _case, _inputs, _outputs, _more: ""])
def test_a_checker_with_other_arguments_is_refused(check: Callable[..., str]) -> None:
    told = r"^check is def check\((_outputs|.*_more)\): it gets case, inputs, outputs, so write def check"
    with pytest.raises(FormulaError, match=told):
        made(lambda x: 2 * x, check=check)


def test_a_size_without_a_range_is_refused() -> None:
    with pytest.raises(FormulaError, match=r"sizes has no Range for n: write Range\(1, 1 << 20\)"):
        made(lambda x: 2 * x, sizes={"n": (1, 1000)})


@pytest.mark.parametrize("wrong", [(5, 2), (1, 15, 16), (17, 31, 16), (1, 5, 0)])
def test_a_range_without_a_value_is_refused(wrong: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="holds no value"):
        Range(*wrong)
