"""The assignment ``rmsnorm``: the first case of each group; ``nox -s assignments`` runs all of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from grader.assignments.assignment import Assignment, load
from grader.assignments.mutants import table
from grader.problems.problem import KernelProblem
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.problems.problem import Case, Inputs, Problem

RMSNORM = load(str(Path(__file__).parents[2] / "assignments" / "rmsnorm"))
NAMES = tuple(RMSNORM.problems)
KERNELS = tuple(name for name, problem in RMSNORM.problems.items() if isinstance(problem, KernelProblem))
MODULE = "rmsnorm_module"


def kernel(name: str) -> KernelProblem:
    problem = RMSNORM.problems[name]
    assert isinstance(problem, KernelProblem)
    return problem


def firsts(problem: Problem) -> tuple[Case, ...]:
    return tuple({case.group: case for case in reversed(problem.cases(1))}.values())


@pytest.mark.usefixtures("ptx_only")
def test_the_reference_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: replace(problem, cases=lambda _, problem=problem: firsts(problem))
        for name, problem in RMSNORM.problems.items()
    }
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    request = grading.GradingRequest(
        RMSNORM.reference, RMSNORM, NAMES, GradingOptions("sim", "process", "device"), seed=1
    )
    record = grading.grade(request, bench=Bench(remembers=True))
    assert [problem.verdict for problem in record.problems] == [Verdict.PASS] * len(NAMES)
    assert (record.score.earned, record.score.decided) == (34, 34)


WRONG_MODULES = (
    ("norm.weight = module.weight", "norm.weight = nn.Parameter(module.weight.clone())", "no copy of it"),
    ("RMSNorm(0, module.variance_epsilon)", "RMSNorm(0)", ""),
    ("dy.contiguous()", "dy.clone()", ""),
)


@cache
def remembering() -> Bench:
    """What those gradings share that meet all cases."""
    return Bench(remembers=True)


@pytest.mark.usefixtures("ptx_only")
@pytest.mark.parametrize(("old", "new", "said"), WRONG_MODULES)
def test_a_wrong_module_fails(old: str, new: str, said: str, tmp_path: Path) -> None:
    shutil.copytree(RMSNORM.reference, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "rmsnorm.py").read_text()
    assert text.count(old) == 1
    (tmp_path / "rmsnorm.py").write_text(text.replace(old, new))
    request = grading.GradingRequest(
        tmp_path, RMSNORM, (MODULE,), GradingOptions("sim", "process", "device"), seed=1
    )
    (problem,) = grading.grade(request, bench=remembering()).problems
    assert problem.verdict is Verdict.FAIL
    messages = [f"{case.message} {case.diagnosis}" for case in problem.correctness.cases]
    assert any(said in message for message in messages)


def tensors(given: Inputs) -> dict[str, torch.Tensor]:
    return {
        name: torch.from_numpy(array.astype(np.float64))
        for name, array in given.arrays.items()
        if array is not None
    }


@pytest.mark.parametrize("name", KERNELS)
def test_the_oracle_is_what_pytorch_computes(name: str) -> None:
    for case in firsts(kernel(name)):
        given = kernel(name).inputs(case)
        arrays, hidden = tensors(given), case.sizes["hidden"]
        expected = {
            one: part.candidates[-1].expected for one, part in kernel(name).oracle(case, given).items()
        }
        x, weight = arrays["x"].requires_grad_(), arrays["weight"].requires_grad_()
        y = torch.nn.functional.rms_norm(x, (hidden,), weight, float(np.float32(1e-6)))
        if name == "rmsnorm_forward":
            np.testing.assert_allclose(expected["y"], y.detach().numpy(), rtol=1e-12)
            continue
        dx, dweight = torch.autograd.grad(y, (x, weight), arrays["dy"])
        size = float(
            (arrays["rstd"][:, None] * arrays["dy"] * weight.detach()).abs().max()
        )  # rstd is a float32
        total = float((arrays["rstd"][:, None] * arrays["dy"] * arrays["x"].detach()).abs().sum(0).max())
        np.testing.assert_allclose(expected["dx"], dx.numpy(), rtol=1e-5, atol=1e-6 * size)
        np.testing.assert_allclose(expected["dweight"], dweight.numpy(), rtol=1e-5, atol=1e-6 * total)


def halves(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return values.astype(np.float16).astype(np.float32)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_that_rounds_tiny_numbers_on_the_way_is_right(name: str) -> None:
    """Half precision holds multiples of 2^-24 alone there, and a product may double what was lost."""
    draw, rows, hidden = np.random.default_rng(3), 400, 256
    case = next(one for one in kernel(name).cases(1) if one.dtype == "float16")
    small = halves((draw.standard_normal((rows, hidden)) * 1e-6).astype(np.float32))
    weight = halves(draw.uniform(1, 3, hidden).astype(np.float32))
    x, dy = small.copy(), small
    if name == "rmsnorm_forward":
        x[:, 0] = 11.0  # the root mean square of a row is about 0.7
    else:
        x = halves((draw.standard_normal((rows, hidden)) / 10).astype(np.float32))
    root = np.float32(1) / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(1e-6))
    n, g = halves(x * root), halves(dy * weight)
    given = {"dy": dy, "x": x, "weight": weight, "rstd": root[:, 0]}
    content = type(kernel(name).inputs(case))(given, {"dweight": (hidden,)}, {})
    got = {"y": n * weight, "dx": root * (g - n * (g * n).mean(axis=1, keepdims=True))}
    expected = kernel(name).oracle(replace(case, sizes={"rows": rows, "hidden": hidden}), content)
    (output,) = got.keys() & expected.keys()
    off = np.abs(halves(got[output]) - expected[output].candidates[0].expected)
    assert (off <= expected[output].candidates[0].allowed).all()


def test_every_mutant_is_an_edit_of_the_reference() -> None:
    mutants = table(RMSNORM)
    assert len(mutants) >= 20
    for mutant in mutants:
        assert mutant.text(RMSNORM)
        assert mutant.group in (*kernel(mutant.problem).groups, "memory and concurrency")
