"""The assignment ``rglru``: the first case of each group; ``nox -s assignments`` runs all of them."""

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
    from grader.problems.problem import Case, Inputs, Problem

RGLRU = load(str(Path(__file__).parents[2] / "assignments" / "rglru"))
NAMES = tuple(RGLRU.problems)
KERNELS = tuple(name for name, problem in RGLRU.problems.items() if isinstance(problem, KernelProblem))


def kernel(name: str) -> KernelProblem:
    problem = RGLRU.problems[name]
    assert isinstance(problem, KernelProblem)
    return problem


def firsts(problem: Problem) -> tuple[Case, ...]:
    return tuple({case.group: case for case in reversed(problem.cases(1))}.values())


@pytest.mark.long
@pytest.mark.usefixtures("ptx_only")
def test_the_reference_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    some = {
        name: replace(problem, cases=lambda _, problem=problem: firsts(problem))
        for name, problem in RGLRU.problems.items()
    }
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    request = grading.GradingRequest(
        RGLRU.reference, RGLRU, NAMES, GradingOptions("sim", "process", "device"), seed=1
    )
    record = grading.grade(request, bench=Bench(remembers=True))
    assert [problem.verdict for problem in record.problems] == [Verdict.PASS] * len(NAMES)
    assert (record.score.earned, record.score.decided) == (46, 46)


@pytest.mark.long
@pytest.mark.usefixtures("ptx_only")
def test_the_reference_is_right_with_less_shared_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = {
        name: tuple(case for case in kernel(name).cases(1) if case.group == "long sequences")
        for name in KERNELS
    }
    some = {name: replace(kernel(name), cases=lambda _, name=name: long[name]) for name in KERNELS}
    monkeypatch.setattr(Assignment, "problems", property(lambda _: some))
    shutil.copytree(RGLRU.reference, tmp_path, dirs_exist_ok=True)
    file, stages = tmp_path / "rglru_kernel.cu", "return 3 * bytes <= most ? 3 : 2;"
    assert file.read_text().count(stages) == 1
    file.write_text(file.read_text().replace(stages, "return 2;"))
    request = grading.GradingRequest(
        tmp_path, RGLRU, KERNELS, GradingOptions("sim", "process", "device"), seed=1
    )
    record = grading.grade(request, bench=Bench(remembers=True))
    assert [problem.verdict for problem in record.problems] == [Verdict.PASS] * len(KERNELS)


WRONG_LAYERS = (
    ("dh.contiguous()", "dh"),
    ("None if h0 is None else h0.contiguous()", "None"),
    ("recurrence = rglru if self.use_fused_kernel else unfused_rglru", "recurrence = unfused_rglru"),
)


@cache
def remembering() -> Bench:
    """What those gradings share that meet all cases."""
    return Bench(remembers=True)


@pytest.mark.usefixtures("ptx_only")
@pytest.mark.parametrize(("old", "new"), WRONG_LAYERS)
def test_a_wrong_layer_fails(old: str, new: str, tmp_path: Path) -> None:
    shutil.copytree(RGLRU.reference, tmp_path, dirs_exist_ok=True)
    text = (tmp_path / "rglru.py").read_text()
    assert text.count(old) == 1
    (tmp_path / "rglru.py").write_text(text.replace(old, new))
    request = grading.GradingRequest(
        tmp_path, RGLRU, ("rglru_layer",), GradingOptions("sim", "process", "device"), seed=1
    )
    (problem,) = grading.grade(request, bench=remembering()).problems
    assert problem.verdict is Verdict.FAIL


def tensors(given: Inputs) -> dict[str, torch.Tensor]:
    return {
        name: torch.from_numpy(array.astype(np.float64)).requires_grad_()
        for name, array in given.arrays.items()
        if array is not None
    }


def by_hand(name: str, arrays: dict[str, torch.Tensor]) -> torch.Tensor:
    if name == "linear_scan":
        a, b = arrays["a"], arrays["b"]
    else:
        d = 8 * torch.sigmoid(arrays["ga"]) * torch.nn.functional.softplus(arrays["c"])
        a = torch.exp(-d)
        b = torch.sqrt(-torch.expm1(-2 * d)) * torch.sigmoid(arrays["gx"]) * arrays["x"]
    state = arrays.get("h0", torch.zeros_like(a[:, 0]))
    states = []
    for t in range(a.shape[1]):
        state = a[:, t] * state + b[:, t]
        states.append(state)
    return torch.stack(states, 1)


@pytest.mark.parametrize("name", KERNELS)
def test_the_oracle_is_what_autograd_computes(name: str) -> None:
    for case in firsts(kernel(name)):
        if case.sizes["length"] > 300:
            continue
        given = kernel(name).inputs(case)
        arrays = tensors(given)
        expected = {
            one: part.candidates[0].expected for one, part in kernel(name).oracle(case, given).items()
        }
        states = by_hand(name, arrays)
        if name != "rglru_backward":
            np.testing.assert_allclose(expected["h"], states.detach().numpy(), rtol=1e-11, atol=1e-14)
            continue
        wanted = [one for one in ("x", "gx", "ga", "c", "h0") if one in arrays]
        gradients = torch.autograd.grad(states, [arrays[one] for one in wanted], arrays["dh"].detach())
        rounding = 1e-6 if case.dtype == "float32" else 2e-2  # the oracle takes h as its type holds it
        for one, gradient in zip(wanted, gradients, strict=True):
            size = float(gradient.abs().max())
            np.testing.assert_allclose(
                expected[f"d{one}"], gradient.numpy(), rtol=rounding, atol=rounding * size
            )


def test_the_gradients_are_finite_where_a_factor_is_one() -> None:
    problem = kernel("rglru_backward")
    case = next(case for case in problem.cases(1) if case.distribution == "factors of exactly 1")
    given = problem.inputs(case)
    found = problem.oracle(case, given)
    assert (given.arrays["ga"] == -200).any()
    assert all(np.isfinite(part.candidates[0].expected).all() for part in found.values())


def test_every_mutant_is_an_edit_of_the_reference() -> None:
    mutants = table(RGLRU)
    assert len(mutants) >= 12
    for mutant in mutants:
        assert mutant.text(RGLRU)
        assert mutant.group in (*kernel(mutant.problem).groups, "memory and concurrency")
