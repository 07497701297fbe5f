"""Files of the KernelBench form as problems of an assignment, and what is made of answers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from importers import models
from importers.answers import graded

from grader.assignments import names
from grader.assignments.assignment import Assignment, load
from grader.importers.folders import imported
from grader.problems.module import ModuleProblem
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """All files that can be imported, as one assignment."""
    folder = tmp_path_factory.mktemp("imported")
    for name in models.MODELS:
        models.write(folder / "models", name)
    (folder / "models" / "other.py").write_text("import nothing_of_this_name")
    report = imported(folder / "models", folder / "course")
    assert not report.refused
    return load(str(folder / "course"))


def test_the_assignment_is_one_that_can_be_graded(assignment: Assignment) -> None:
    names.check(assignment)
    names.try_out(assignment)
    assert {entry.id: bool(entry.performance) for entry in assignment.rules.problems} == dict.fromkeys(
        (
            *("gated", "scaled_softmax", "folded", "product", "leaky", "mean_over", "running_total"),
            *("error", "largest_place", "normed", "linear", "convolved", "layer_norm"),
        ),
        True,
    )


@pytest.mark.parametrize(
    ("name", "initial", "passed"),
    [
        ("gated", 0, ("x", "gate")),
        ("scaled_softmax", 1, ("scale", "x")),
        ("folded", 1, ("groups", "x")),
        ("product", 0, ("A", "B")),
        ("leaky", 0, ("x",)),
        ("linear", 1, ("features", "linear_weight", "linear_bias", "x")),
    ],
)
def test_an_object_is_made_with_what_the_file_says(
    assignment: Assignment, name: str, initial: int, passed: tuple[str, ...]
) -> None:
    problem = assignment.problems[name]
    assert isinstance(problem, ModuleProblem)
    assert (problem.entry_point, problem.initial, problem.passed) == ("ModelNew", initial, passed)
    assert problem.tolerance is None


def test_sizes_that_the_class_does_not_take_are_left_out(assignment: Assignment) -> None:
    sizes = [case.sizes for case in assignment.problems["folded"].cases(1)]
    assert {size["features"] % 8 for size in sizes} == {0}
    others = [case.sizes for case in assignment.problems["gated"].cases(1)]
    assert any(size["dim"] % 2 for size in others)


def test_weights_are_arguments_of_the_problem_and_none_of_forward(assignment: Assignment) -> None:
    convolved = assignment.problems["convolved"]
    assert isinstance(convolved, ModuleProblem)
    assert convolved.tolerance is None
    assert convolved.weights == ("layers.0.weight", "layers.0.bias")
    assert convolved.passed[:4] == ("channels", "filters", "layers_0_weight", "layers_0_bias")
    assert convolved.forwarded == ("image",)
    first, other = (convolved.inputs(convolved.cases(seed)[0]).arrays["layers_0_weight"] for seed in (1, 2))
    assert first is not None
    assert other is not None
    assert first.shape == (8, 3, 3, 3)
    assert (first != other).any()


def test_a_file_alone_is_imported(tmp_path: Path) -> None:
    path = models.write(tmp_path, "5_product")
    report = imported(path, tmp_path / "course")
    assert [written.file for written in report.written] == ["submission.py"]
    assert load(str(tmp_path / "course")).rules.title == "5 product"


IN_CPP = '''
import torch
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void gate(float* out, const float* x, const float* gates, long n) {
  const long at = static_cast<long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < n) out[at] = x[at] / (1.0f + expf(-gates[at]));
}

torch::Tensor launch(torch::Tensor x, torch::Tensor gates) {
  auto out = torch::empty_like(x);
  const long n = x.numel();
  gate<<<(n + 255) / 256, 256>>>(out.data_ptr<float>(), x.data_ptr<float>(), gates.data_ptr<float>(), n);
  return out;
}
"""
DECLARED = "torch::Tensor launch(torch::Tensor x, torch::Tensor gates);"
module = load_inline(name="gate", cpp_sources=DECLARED, cuda_sources=CUDA, functions=["launch"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = module

    def forward(self, x, gate):
        return self.kernels.launch(x, gate)
'''
IN_TRITON = """
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(y, x, columns, scale, size: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64) * columns, tl.arange(0, size)
    values = tl.load(x + row + at, mask=at < columns, other=float("-inf")) * scale
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(y + row + at, powers / tl.sum(powers, 0), mask=at < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](y, x, x.shape[1], self.scale, triton.next_power_of_2(x.shape[1]))
        return y
"""


def test_a_class_in_cpp_is_judged(assignment: Assignment, tmp_path: Path) -> None:
    (right,) = graded(assignment, tmp_path, "gated", IN_CPP).problems
    assert right.verdict is Verdict.PASS, (right.message, right.build, right.trust)
    (wrong,) = graded(assignment, tmp_path, "gated", IN_CPP.replace("expf(-gates", "expf(gates")).problems
    assert wrong.verdict is Verdict.FAIL


def test_a_class_in_triton_gets_the_numbers_that_it_is_made_with(
    assignment: Assignment, tmp_path: Path
) -> None:
    (right,) = graded(assignment, tmp_path, "scaled_softmax", IN_TRITON).problems
    assert right.verdict is Verdict.PASS, right.message
    (wrong,) = graded(
        assignment, tmp_path, "scaled_softmax", IN_TRITON.replace("self.scale = scale", "self.scale = 1.0")
    ).problems
    assert wrong.verdict is Verdict.FAIL


def test_a_class_that_takes_other_arguments_is_told_which(assignment: Assignment, tmp_path: Path) -> None:
    text = IN_CPP.replace("def forward(self, x, gate)", "def forward(self, x, gate, more)")
    (result,) = graded(assignment, tmp_path, "gated", text).problems
    assert "Give it nothing more than the object in __init__, and x, gate in forward." in result.message


WITH_WEIGHTS = """
import torch
import triton
import triton.language as tl


@triton.jit
def linear(y, x, weight, bias, features, size: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, size)
    inside = at < features
    both = inside[:, None] & inside[None, :]
    matrix = tl.load(weight + at[:, None] * features + at[None, :], both, other=0.0)
    products = matrix * tl.load(x + row * features + at, inside, other=0.0)[None, :]
    tl.store(y + row * features + at, tl.sum(products, 1) + tl.load(bias + at, inside), inside)


class ModelNew(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = torch.nn.Linear(features, features)

    def forward(self, x):
        y = torch.empty_like(x)
        rows, features = x.shape
        size = triton.next_power_of_2(features)
        linear[(rows,)](y, x, self.linear.weight, self.linear.bias, features, size)
        return y
"""


def test_an_object_gets_the_weights_of_the_original(assignment: Assignment, tmp_path: Path) -> None:
    (right,) = graded(assignment, tmp_path, "linear", WITH_WEIGHTS).problems
    assert right.verdict is Verdict.PASS, (right.message, right.trust, right.correctness)
    (wrong,) = graded(
        assignment, tmp_path, "linear", WITH_WEIGHTS.replace(" + tl.load(bias", " - tl.load(bias")
    ).problems
    assert wrong.verdict is Verdict.FAIL


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("self.linear", "self.layer", "ModelNew has no weight linear.weight, which Model has"),
        (
            "Linear(features, features)",
            "Linear(features, 3)",
            "has the shape [3, 16], and it has [16, 16] in Model",
        ),
    ],
)
def test_an_object_without_a_weight_of_the_original_is_told_which(
    assignment: Assignment, tmp_path: Path, old: str, new: str, message: str
) -> None:
    (result,) = graded(assignment, tmp_path, "linear", WITH_WEIGHTS.replace(old, new)).problems
    assert result.verdict is Verdict.FAIL
    assert any(message in case.message for case in result.correctness.cases), result.correctness
