"""What ``assignments_gpu.py`` compares with is right: bytes, and the formulas that are compiled."""

from __future__ import annotations

from pathlib import Path

import assignments_gpu
import numpy as np
import pytest
import torch

from grader.assignments.assignment import load
from grader.problems.distributions import normal
from grader.problems.problem import Case, KernelProblem
from grader.soundness.kernels import right_kernels

FOLDER = Path(__file__).parents[2] / "assignments"


@pytest.mark.parametrize(
    ("assignment", "name"),
    [("rmsnorm", "rmsnorm_forward"), ("rmsnorm", "rmsnorm_backward"), ("rglru", "linear_scan"),
     ("rglru", "rglru_forward"), ("rglru", "rglru_backward")],
)  # fmt: skip
def test_the_stream_moves_the_bytes_of_the_problem(assignment: str, name: str) -> None:
    problem = load(str(FOLDER / assignment)).problems[name]
    assert isinstance(problem, KernelProblem)
    shape = {"rows": 1024, "hidden": 4096, "batch": 8, "length": 1024, "width": 1024}
    case = Case("", "", shape, "", 0, dtype="bfloat16")
    assert sum(assignments_gpu.minimal_bytes(name, 1024)) == pytest.approx(
        problem.minimal_bytes(case), rel=2e-3
    )


def test_the_compiled_gradient_is_that_of_the_compiled_formula() -> None:
    random = np.random.default_rng(1)
    x, dy, weight = (torch.from_numpy(normal(random, shape)) for shape in ((4, 64), (4, 64), (64,)))
    leaves = (x.clone().requires_grad_(), weight.clone().requires_grad_())
    expected = torch.autograd.grad(assignments_gpu.llama(*leaves), leaves, dy)
    rstd = torch.rsqrt(x.square().mean(-1) + assignments_gpu.EPSILON)
    for one, other in zip(assignments_gpu.llama_backward(dy, x, weight, rstd), expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("name", assignments_gpu.WRITTEN)
def test_what_is_timed_beside_the_reference_is_a_variant(name: str) -> None:
    known = right_kernels(load(str(FOLDER / "rglru")))
    assert (name, assignments_gpu.variant(name)) in [(one.problem.id, one.files) for one in known]


@pytest.mark.parametrize("name", assignments_gpu.problems())
def test_a_launcher_gets_what_it_asks_for(name: str) -> None:
    problem = assignments_gpu.problems()[name]
    x = torch.zeros((4, 8) if name.startswith("rmsnorm") else (2, 4, 8))
    asked = {one.name for one in problem.parameters} - {one.name for one in problem.arrays} - {"stream"}
    assert asked <= assignments_gpu.scalars(x).keys()
