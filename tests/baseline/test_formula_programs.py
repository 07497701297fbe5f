"""The baselines that follow from formulas: on the simulator they compute what the oracle expects."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from problems.formulas import FORMULAS

from grader.judge.timing.pytorch import stepwise
from grader.problems.contents import real
from grader.problems.dtypes import DTYPES
from grader.problems.explained import FormulaError
from grader.problems.formula import Range, problem
from grader.problems.problem import Role

if TYPE_CHECKING:
    from collections.abc import Callable

    from baseline.conftest import Memory, Ran

    from grader.problems.problem import Case, Inputs, KernelProblem

HALF = {"float16": 2.0**-8, "bfloat16": 2.0**-5}
"""Room where every operation rounds its result to a half type, relative to the largest element."""


def a_case(asked: KernelProblem) -> Case:
    return next(case for case in asked.cases(3) if case.group == "streams")


def memory_of(asked: KernelProblem, given: Inputs) -> Memory:
    memory: Memory = {}
    for array in asked.arrays:
        data, stored = given.arrays.get(array.name), DTYPES[array.dtype].storage
        memory[array.name] = np.zeros(given.outputs[array.name], stored) if data is None else data
    return memory


def compared(ran: Ran) -> None:
    """Every formula's program, with the real kernels, against its oracle."""
    asked = list(FORMULAS.values())
    cases = [a_case(one) for one in asked]
    inputs = [one.inputs(case) for one, case in zip(asked, cases, strict=True)]
    programs = [
        (one.unfused(case), memory_of(one, given))
        for one, case, given in zip(asked, cases, inputs, strict=True)
    ]
    for one, case, given, memory in zip(asked, cases, inputs, ran(programs), strict=True):
        right(one, case, given, memory)


def right(asked: KernelProblem, case: Case, given: Inputs, memory: Memory) -> None:
    for name, expectation in asked.oracle(case, given).items():
        candidate, dtype = expectation.candidates[0], next(a.dtype for a in asked.arrays if a.name == name)
        expected, got = candidate.expected, memory[name].reshape(candidate.expected.shape)
        room = candidate.allowed + HALF.get(dtype, 0.0) * np.abs(expected).max()
        error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
        assert (error <= room).all(), (asked.id, name, float(np.max(error - room)))


def test_every_formula_s_program_is_right(on_the_sim: Ran) -> None:
    compared(on_the_sim)


@pytest.mark.gpu
def test_every_formula_s_program_is_right_on_a_gpu(on_the_gpu: Ran) -> None:
    compared(on_the_gpu)


@pytest.mark.parametrize("name", FORMULAS)
def test_both_ways_of_pytorch_compute_the_same(name: str) -> None:
    asked = FORMULAS[name]
    case = a_case(asked)
    given = asked.inputs(case)
    tensors = {}
    for array, data in memory_of(asked, given).items():
        dtype = next(one.dtype for one in asked.arrays if one.name == array)
        wide = data if DTYPES[dtype].exact else data.astype(np.float64)
        tensors[array] = torch.from_numpy(wide.copy()).to(getattr(torch, DTYPES[dtype].tensor))
    assert asked.fused is not None
    outputs = [one.name for one in asked.arrays if one.role is not Role.INPUT]
    whole: Any = asked.fused({n: t.clone() for n, t in tensors.items()}, given.scalars)()
    memory = stepwise(asked.unfused(case), tensors)()
    for output, fused in zip(outputs, whole, strict=True):
        stepped = memory[output].reshape(fused.shape)
        for result in (fused, stepped):
            numbers = (result.double() if result.is_floating_point() else result.long()).numpy()
            stored = next(DTYPES[one.dtype] for one in asked.arrays if one.name == output)
            numbers = numbers.astype(stored.storage) if stored.exact else numbers  # unsigned ones wrap
            right(replace(asked, oracle=one_of(asked, output)), case, given, {output: numbers})


def one_of(asked: KernelProblem, output: str) -> Callable[[Case, Inputs], dict[str, Any]]:
    return lambda case, given: {output: asked.oracle(case, given)[output]}


@pytest.mark.parametrize("name", FORMULAS)
def test_a_program_writes_its_outputs_once_and_no_input(name: str) -> None:
    asked = FORMULAS[name]
    program = asked.unfused(a_case(asked))
    roles = {array.name: array.role for array in asked.arrays}
    written = [one.output.name for one in program if one.output.name in roles]
    assert {roles[one] for one in written} <= {Role.OUTPUT, Role.INOUT}
    assert set(written) == {one for one, role in roles.items() if role is not Role.INPUT}
    known = {one for one, role in roles.items() if role is not Role.OUTPUT}
    for operation in program:
        assert {one.name for one in operation.tensors} <= known
        known.add(operation.output.name)


def length(name: str) -> int:
    return len(FORMULAS[name].unfused(a_case(FORMULAS[name])))


def test_a_program_has_one_kernel_for_each_operation_and_none_to_spare() -> None:
    lengths = {name: length(name) for name in ("saxpy", "half_add", "sum_rows", "transpose", "matmul")}
    assert lengths == {"saxpy": 2, "half_add": 1, "sum_rows": 2, "transpose": 1, "matmul": 1}
    names = [one.function for one in FORMULAS["masked_softmax"].unfused(a_case(FORMULAS["masked_softmax"]))]
    assert names == ["add", "amax", "subtract", "exp", "sum", "divide"]


def test_what_has_no_elements_takes_no_kernel() -> None:
    case = replace(a_case(FORMULAS["stencil"]), sizes={"rows": 2, "n": 5})
    program = FORMULAS["stencil"].unfused(case)
    assert [(one.function, one.output.shape) for one in program] == [("copy", (2, 5))] * 3


def changes(x: torch.Tensor) -> torch.Tensor:
    x += 1
    return x


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (lambda x: x.kthvalue(1).values, "the baseline has no kernel for kthvalue"),
        (
            lambda x: x + torch.tensor([1.0, 2.0]).sum() * torch.tensor([1.0])[0],
            "an array of constants|neither an input",
        ),
        (changes, "the formula changes its input x: clone it first"),
    ],
)
def test_what_has_no_kernel_is_refused_by_name(
    formula: Callable[[torch.Tensor], torch.Tensor], text: str
) -> None:
    arguments: dict[str, Any] = {
        "id": "any",
        "file": "any.cu",
        "launcher": "f(float* x, int n)" if formula is changes else "f(float* y, const float* x, int n)",
        "formula": formula,
        "inputs": lambda n: {"x": real(n)},
        "sizes": {"n": Range(1, 100)},
    }
    asked: Any = problem(**arguments, timing=({"n": 100},))
    with pytest.raises(FormulaError, match=text):
        asked.unfused(asked.cases(1)[10])
    untimed: Any = problem(**arguments)
    assert untimed.unfused(untimed.cases(1)[10]) == ()
