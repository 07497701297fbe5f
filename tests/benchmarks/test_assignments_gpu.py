"""What ``assignments_gpu.py`` compares with is right: bytes, and the formulas that are compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import assignments_gpu
import numpy as np
import pytest
import scan_candidates
import torch

from grader.assignments.assignment import Assignment, load
from grader.problems.distributions import normal
from grader.problems.problem import Case, KernelProblem
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench

FOLDER = Path(__file__).parents[2] / "assignments"
LOOKED_AT = ("widths", "initial state", "bfloat16")
"""Groups of cases on which candidates are tried here; ``grader grade`` on their files tries all."""


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


@pytest.mark.usefixtures("ptx_only")
@pytest.mark.parametrize("name", scan_candidates.candidates())
def test_every_candidate_is_right(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rglru = load(str(FOLDER / "rglru"))
    kernels = {key: one for key, one in rglru.problems.items() if isinstance(one, KernelProblem)}
    firsts = {
        key: tuple({case.group: case for case in reversed(one.cases(1)) if case.group in LOOKED_AT}.values())
        for key, one in kernels.items()
    }
    some = {key: replace(one, cases=lambda _, key=key: firsts[key]) for key, one in kernels.items()}
    monkeypatch.setattr(Assignment, "problems", some)
    for file, text in scan_candidates.candidates()[name].items():
        (tmp_path / file).write_text(text)
    request = grading.GradingRequest(tmp_path, rglru, tuple(some), "sim", "process", "device", seed=1)
    record = grading.grade(request, bench=Bench(remembers=True))
    assert [problem.verdict for problem in record.problems] == [Verdict.PASS] * len(some)


def test_the_place_of_an_edit_has_to_be_there_once() -> None:
    with pytest.raises(ValueError, match=r"rglru_kernel.cu has not one place from 'no such' to ''"):
        scan_candidates.edited("rglru_kernel.cu", "no such", "", "")


@pytest.mark.parametrize("name", assignments_gpu.problems())
def test_a_launcher_gets_what_it_asks_for(name: str) -> None:
    problem = assignments_gpu.problems()[name]
    x = torch.zeros((4, 8) if name.startswith("rmsnorm") else (2, 4, 8))
    asked = {one.name for one in problem.parameters} - {one.name for one in problem.arrays} - {"stream"}
    assert asked <= assignments_gpu.scalars(x).keys()
