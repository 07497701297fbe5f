"""The baseline's programs compute what their problems ask, and the planner knows what they need."""

import ctypes
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from _pytest.mark import ParameterSet
from first_assignment import KERNELS
from numpy.typing import NDArray

import grader
from grader.baseline.programs import FUNCTIONS
from grader.problems.dtypes import DTYPES
from grader.problems.operations import (
    MOST_PLAIN_DIMENSIONS,
    PLAIN,
    TYPED,
    Kind,
    Operation,
    Tensor,
    dense,
    mapped,
    reduced,
    temporaries,
    zipped,
)
from grader.problems.problem import ArrayParameter, Case, Inputs, KernelProblem

Memory = dict[str, NDArray[Any]]

PROBLEMS = list(KERNELS.values())

MAPS = {
    "exp": lambda x, _: np.exp(x),
    "sqrt": lambda x, _: np.sqrt(x),
    "add constant": lambda x, constant: x + constant,
    "multiply constant": lambda x, constant: x * constant,
    "hide future": lambda x, _: np.where(np.triu(np.ones(x.shape[-2:], bool), k=1), -np.inf, x),
}
ZIPS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide}
REDUCTIONS = {"sum": np.sum, "max": np.max}


def view(memory: Memory, tensor: Tensor) -> NDArray[Any]:
    flat = memory[tensor.name]
    strides = [stride * flat.itemsize for stride in tensor.strides]
    return np.lib.stride_tricks.as_strided(flat, tensor.shape, strides)


def interpret(program: Iterable[Operation], memory: Memory) -> None:
    """Run ``program`` with numpy over flat arrays by name, as the kernels of generic.cu would."""
    for operation in program:
        operands = [view(memory, operand) for operand in operation.tensors]
        if operation.kind is Kind.MAP:
            result = MAPS[operation.function](operands[0], operation.constant)
        elif operation.kind is Kind.ZIP:
            result = ZIPS[operation.function](*operands)
        else:
            result = REDUCTIONS[operation.function](operands[0], axis=operation.axis, keepdims=True)
        view(memory, operation.output)[...] = result


def memory_of(problem: KernelProblem, case: Case) -> tuple[Inputs, Memory]:
    # The logit inp + mask is a float32 by definition: beside -1e8 that is all that is left of a score.
    dtype = np.float32 if problem.id == "softmax_forward" else np.float64
    given = problem.inputs(case)
    memory = {name: array.astype(dtype).ravel() for name, array in given.arrays.items() if array is not None}
    memory |= {name: np.full(prod(shape), np.nan, dtype) for name, shape in given.outputs.items()}
    needed = temporaries(problem.unfused(case), memory)
    return given, memory | {name: np.full(size, np.nan, dtype) for name, size in needed.items()}


def small_cases() -> Iterator[ParameterSet]:
    """One case of every distribution and group with few elements: larger ones repeat the same operations."""
    for problem in PROBLEMS:
        seen = set()
        for case in problem.cases(7):
            kind = case.group, case.distribution, case.sizes.get("mask_future")
            if (
                kind not in seen
                and prod(case.sizes[name] for name in case.sizes if name != "mask_future") < 40_000
            ):
                seen.add(kind)
                yield pytest.param(problem, case, id=f"{problem.id}-{case.name}")


def by_autograd(problem: KernelProblem, given: Inputs) -> dict[str, torch.Tensor]:
    """The problem's outputs from PyTorch's own operators and their derivatives, in float64."""
    arrays = {
        name: torch.from_numpy(array.astype(np.float64))
        for name, array in given.arrays.items()
        if array is not None
    }
    if problem.id == "softmax_forward":
        scores = given.arrays["inp"]
        if given.arrays["attn_mask"] is not None:
            scores = scores + given.arrays["attn_mask"][:, None, None, :]
        logits = torch.from_numpy(scores.astype(np.float64))
        if given.scalars["mask_future"]:
            hidden = torch.ones(logits.shape[-2:], dtype=torch.bool).triu(1)
            logits = logits.masked_fill(hidden, -torch.inf)
        return {"inp": torch.softmax(logits, -1)}
    if problem.id == "softmax_backward":
        soft = arrays["soft_inp"]
        jacobian = torch.diag_embed(soft) - soft[:, :, None] * soft[:, None, :]
        return {"out_grad": (jacobian @ arrays["out_grad"][:, :, None])[..., 0]}
    rows = arrays["inp"].requires_grad_()
    if problem.id == "layernorm_forward":
        hidden = rows.shape[1:]
        normal = torch.nn.functional.layer_norm(rows, hidden, arrays["scale"], arrays["bias"], eps=1e-8)
        return {"ln_res": normal, "means": rows.mean(1), "vars": rows.var(1, correction=0)}
    gamma, betta = arrays["gamma"].requires_grad_(), arrays["betta"].requires_grad_()
    normal = torch.nn.functional.layer_norm(rows, rows.shape[1:], gamma, betta, eps=1e-8)
    found = torch.autograd.grad(normal, (gamma, betta, rows), arrays["out_grad"])
    return dict(zip(("gamma_grad", "betta_grad", "inp_grad"), found, strict=True))


@pytest.mark.filterwarnings(
    "ignore:invalid value:RuntimeWarning"
)  # fully masked rows are NaN, as they may be
@pytest.mark.parametrize(("problem", "case"), list(small_cases()))
def test_a_program_computes_what_autograd_computes(problem: KernelProblem, case: Case) -> None:
    given, memory = memory_of(problem, case)
    interpret(problem.unfused(case), memory)
    for name, expected in by_autograd(problem, given).items():
        wanted = expected.detach().numpy().ravel()
        scale = np.nanmax(np.abs(wanted), initial=1e-300)
        # Statistics come in float32: their rounding at a mean / sigma of 29 is the room left.
        room = 2e-4 if problem.id == "layernorm_backward" else 1e-6
        # Under a weight of almost 1 the gradients cancel down to their own rounding.
        cancelled = 4 * np.finfo(np.float64).eps * np.nanmax(np.abs(given.arrays.get("out_grad", 0)))
        # The variance of equal numbers is the square of what rounding leaves of their mean.
        left = (4 * np.finfo(np.float64).eps * np.nanmax(np.abs(given.arrays.get("inp", 0)))) ** 2
        atol = room * scale + cancelled + left
        np.testing.assert_allclose(memory[name], wanted, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
def test_a_program_writes_every_output_and_no_input(problem: KernelProblem) -> None:
    roles = {p.name: p.role for p in problem.parameters if isinstance(p, ArrayParameter)}
    for case in problem.timing_cases(1):
        written = {operation.output.name for operation in problem.unfused(case)} & roles.keys()
        assert written == {name for name, role in roles.items() if role in {"out", "inout"}}


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.id)
def test_every_operand_was_given_or_written_before(problem: KernelProblem) -> None:
    for case in (*problem.cases(3), *problem.timing_cases(3)):
        given = {p.name for p in problem.parameters if isinstance(p, ArrayParameter) and p.role != "out"}
        for operation in problem.unfused(case):
            assert {operand.name for operand in operation.tensors} <= given
            assert len(operation.output.shape) <= MOST_PLAIN_DIMENSIONS
            assert operation.plain
            given.add(operation.output.name)


def test_temporaries_are_what_is_not_known_at_its_largest() -> None:
    total = reduced("total", "sum", dense("a", 5, 6), axis=1)
    again = mapped("total", "exp", dense("a", 5, 6))
    result = zipped("b", "add", again.output, total.output)
    assert temporaries((total, again, result), {"a", "b"}) == {"total": 120}


def test_broadcasting_gives_stride_zero_to_repeated_dimensions_only() -> None:
    assert dense("row", 1, 4).broadcast((3, 4)).strides == (0, 1)
    assert dense("one", 1, 1).broadcast((1, 4)).strides == (1, 0)
    with pytest.raises(ValueError, match=r"row of shape \(2, 4\) does not broadcast to \(3, 4\)"):
        dense("row", 2, 4).broadcast((3, 4))


@pytest.mark.parametrize(("file", "table"), [("generic.cu", PLAIN), ("typed.cu", TYPED)])
def test_functions_are_numbered_as_in_the_device_code(
    file: str, table: Mapping[Kind, tuple[str, ...]]
) -> None:
    source = " ".join((Path(grader.__file__).parent / "baseline" / file).read_text().split())
    for kind, functions in table.items():
        if len(functions) > 1:
            names = ", ".join(function.upper().replace(" ", "_") for function in functions)
            assert f"enum {kind.capitalize()}Function {{ {names} }};" in source


def test_types_are_numbered_as_in_the_device_code() -> None:
    source = " ".join((Path(grader.__file__).parent / "baseline" / "typed.cu").read_text().split())
    assert f"enum Dtype {{ {', '.join(name.upper() for name in DTYPES)} }};" in source


@pytest.mark.parametrize("file", ["generic.cu", "typed.cu"])
def test_the_device_code_compiles_and_exports_its_entry_points(file: str, tmp_path: Path) -> None:
    source = Path(grader.__file__).parent / "baseline" / file
    library = tmp_path / "code.so"
    architecture = ["-gencode", "arch=compute_80,code=compute_80"]
    options = ["--shared", "-Xcompiler", "-fPIC,-Wall,-Werror", *architecture]
    subprocess.run(["nvcc", *options, "-o", str(library), str(source)], check=True)
    symbols = ctypes.CDLL(str(library))
    assert all(hasattr(symbols, name) for name in FUNCTIONS[file])
