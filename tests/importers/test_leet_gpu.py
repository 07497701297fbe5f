"""Challenges of the LeetGPU form as problems of an assignment, and what is made of answers to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from importers import challenges
from importers.answers import graded, problem

from grader.assignments import names
from grader.assignments.assignment import Assignment, load
from grader.importers.folders import ImportFaultError, imported
from grader.problems.grid import MAGNITUDES
from grader.problems.problem import Role
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """All challenges, imported as one assignment."""
    folder = tmp_path_factory.mktemp("imported")
    for name in challenges.CHALLENGES:
        challenges.write(folder / "challenges", name)
    report = imported(folder / "challenges", folder / "course")
    assert not report.refused
    return load(str(folder / "course"))


def test_the_assignment_is_one_that_can_be_graded(assignment: Assignment) -> None:
    names.check(assignment)
    names.try_out(assignment)
    assert {entry.id: bool(entry.performance) for entry in assignment.rules.problems} == {
        "scaled_sum": True,
        "turned": True,
        "counts": False,
        "sorted_place": False,
        "product": True,
        "row_shares": True,
        "total": True,
        "running_total": True,
        "inverted": False,
        "sorted": True,
    }


@pytest.mark.parametrize("name", ["scaled_sum", "turned", "product", "row_shares", "total", "running_total"])
def test_a_reference_that_fills_a_tensor_has_derived_bounds_and_more_cases(
    assignment: Assignment, name: str
) -> None:
    traced = problem(assignment, name)
    assert (traced.entry_point, traced.packed, traced.made, traced.tolerance) == ("solve", False, (), None)
    assert [array.name for array in traced.arrays if array.role is not Role.INPUT] == list(traced.outputs)
    assert MAGNITUDES in {case.group for case in traced.cases(1)}


def test_numbers_lie_where_those_of_the_tests_do(assignment: Assignment) -> None:
    summed = problem(assignment, "scaled_sum")
    case = max((c for c in summed.cases(1) if c.distribution == "normal"), key=lambda c: c.sizes["N"])
    right = summed.inputs(case).arrays["right"]
    assert right is not None
    assert 0 <= right.min() < right.max() <= 1


def test_whole_numbers_and_those_in_order_come_from_the_tests_themselves(assignment: Assignment) -> None:
    counts = problem(assignment, "counts")
    assert counts.tolerance is not None
    assert counts.tolerance.why == "what its tests hold does not follow from sizes"
    cases = counts.cases(1)
    assert len(cases) == 3
    inputs = counts.inputs(cases[1])
    assert inputs.scalars == {"N": 100, "bins": 4}
    others = counts.inputs(counts.cases(2)[1])
    assert not np.array_equal(inputs.arrays["values"], others.arrays["values"])  # type: ignore[arg-type]
    places = problem(assignment, "sorted_place")
    data = places.inputs(places.cases(1)[2]).arrays["data"]
    assert data is not None
    assert (np.diff(data) >= 0).all()


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("num_gpus=1", "num_gpus=2", "it needs several GPUs"),
        ('"total": torch.empty', '"sum": torch.empty', "a test has no total, which solve gets"),
        ('"out")', '"in")', "no parameter of solve is written"),
        ("class Challenge(", "class Exercise(", "has no class Challenge"),
    ],
)
def test_what_cannot_be_imported_is_named_with_the_reason(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    folder = challenges.write(tmp_path, "1_scaled_sum", (old, new))
    with pytest.raises(ImportFaultError, match=reason) as refused:
        imported(folder, tmp_path / "course")
    assert str(folder) in str(refused.value)


IN_CPP = '''
from torch.utils.cpp_extension import load_inline

CUDA = """
__global__ void sum(float* total, const float* left, const float* right, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) total[at] = left[at] + 2.0f * right[at];
}

void launch(torch::Tensor left, torch::Tensor right, torch::Tensor total, int64_t n) {
  sum<<<(n + 255) / 256, 256>>>(
      total.data_ptr<float>(), left.data_ptr<float>(), right.data_ptr<float>(), n);
}
"""
DECLARED = "void launch(torch::Tensor left, torch::Tensor right, torch::Tensor total, int64_t n);"
module = load_inline(name="sum", cpp_sources=DECLARED, cuda_sources=CUDA, functions=["launch"])


def solve(left, right, total, N):
    module.launch(left, right, total, N)
'''
IN_TRITON = """
import triton
import triton.language as tl


@triton.jit
def count(counts, values, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < n
    tl.atomic_add(counts + tl.load(values + at, mask=inside, other=0), 1, mask=inside)


def solve(values, counts, N, bins):
    counts.zero_()
    count[(triton.cdiv(N, 256),)](counts, values, N, 256)
"""


def test_an_answer_in_cpp_gets_its_arguments_one_by_one(assignment: Assignment, tmp_path: Path) -> None:
    (right,) = graded(assignment, tmp_path, "scaled_sum", IN_CPP).problems
    assert right.verdict is Verdict.PASS, (right.message, right.build)
    (wrong,) = graded(assignment, tmp_path, "scaled_sum", IN_CPP.replace("at < n", "at < n - 1")).problems
    assert wrong.verdict is Verdict.FAIL


def test_an_answer_in_triton_is_judged_by_the_tests_of_the_challenge(
    assignment: Assignment, tmp_path: Path
) -> None:
    (right,) = graded(assignment, tmp_path, "counts", IN_TRITON).problems
    assert right.verdict is Verdict.PASS, right.message
    (wrong,) = graded(assignment, tmp_path, "counts", IN_TRITON.replace("triton.cdiv(N, 256)", "1")).problems
    assert wrong.verdict is Verdict.FAIL
