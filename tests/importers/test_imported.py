"""Imported problems as modules of an assignment: bounds are derived where they can be, and answers judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from importers import originals
from importers.answers import graded, problem

from grader.assignments import names
from grader.assignments.assignment import Assignment, load
from grader.importers.folders import ImportFaultError, imported
from grader.problems.contents import EQUAL, HUGE
from grader.problems.grid import MAGNITUDES
from grader.problems.original import TESTS
from grader.problems.problem import Role
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def assignment(tmp_path_factory: pytest.TempPathFactory) -> Assignment:
    """All originals, imported as one assignment."""
    folder = tmp_path_factory.mktemp("imported")
    for name in originals.ORIGINALS:
        originals.write(folder / "originals", name)
    report = imported(folder / "originals", folder / "course")
    assert not report.refused
    return load(str(folder / "course"))


def test_the_assignment_is_one_that_can_be_graded(assignment: Assignment) -> None:
    names.check(assignment)
    names.try_out(assignment)
    assert {entry.id: bool(entry.performance) for entry in assignment.rules.problems} == {
        "cross_entropy": False,
        "grayscale": False,  # its weights are constants, for which there is no baseline
        "histogram": False,
        "matmul": True,
        "prefix_sum": False,
        "quantised_product": False,
        "scaled_in_place": False,
        "softmax": True,
        "sort": False,
        "total": False,
        "vector_sum": True,
        "windows": False,
    }


@pytest.mark.parametrize(
    "name",
    [
        *("vector_sum", "grayscale", "prefix_sum", "scaled_in_place", "total", "windows"),
        *("cross_entropy", "matmul", "quantised_product", "softmax"),
    ],
)
def test_a_traced_reference_has_derived_bounds_and_more_cases(assignment: Assignment, name: str) -> None:
    traced = problem(assignment, name)
    assert traced.tolerance is None
    cases = traced.cases(1)
    assert MAGNITUDES in {case.group for case in cases}
    assert len(cases) > 10
    for case in sorted(cases, key=lambda case: sum(case.sizes.values()))[:4]:
        inputs = traced.inputs(case)
        (expectation,) = traced.oracle(case, inputs).values()
        (candidate,) = expectation.candidates
        assert 0 < candidate.allowed.max() < 1e-2 * abs(candidate.expected).max()


def test_cases_lie_between_the_tests_and_benchmarks(assignment: Assignment) -> None:
    cases = problem(assignment, "grayscale").cases(1)
    sizes = [case.sizes for case in cases]
    assert all({"height": h, "width": w} in sizes for h, w in ((16, 32), (32, 16), (64, 64)))
    assert {case.sizes["height"] for case in cases} >= {16, 32, 48, 64}
    assert all(size % 16 == 0 for case in cases for size in case.sizes.values())


def test_inputs_come_from_the_original_and_are_widened(assignment: Assignment) -> None:
    added = problem(assignment, "vector_sum")
    by_distribution = {case.distribution: case for case in added.cases(1)}
    assert {HUGE, EQUAL} <= by_distribution.keys()
    case = by_distribution["normal"]
    first, second = added.inputs(case), added.inputs(case)
    assert all((first.arrays[name] == second.arrays[name]).all() for name in first.arrays)  # type: ignore[union-attr]
    assert (first.arrays["left"] != first.arrays["right"]).any()  # type: ignore[union-attr]
    assert set(first.outputs) == {"total"}


def test_what_changes_in_place_keeps_its_content(assignment: Assignment) -> None:
    scaled = problem(assignment, "scaled_in_place")
    assert scaled.roles == {"matrix": Role.INOUT}
    case = scaled.cases(1)[0]
    inputs = scaled.inputs(case)
    (candidate,) = scaled.oracle(case, inputs)["matrix"].candidates
    assert (candidate.expected == inputs.wide("matrix") * 0.5).all()


@pytest.mark.parametrize(
    ("name", "why"),
    [("histogram", "the shape of an output depends on"), ("sort", "its tests differ in distribution")],
)
def test_what_cannot_be_traced_keeps_tests_and_tolerance(assignment: Assignment, name: str, why: str) -> None:
    listed = problem(assignment, name)
    assert listed.tolerance is not None
    assert why in listed.tolerance.why
    assert {case.group for case in listed.cases(1)} == {TESTS}
    assert len(listed.cases(1)) == 2
    seeds = [{case.seed for case in listed.cases(seed)} for seed in (1, 2)]
    assert not seeds[0] & seeds[1]


def test_an_element_within_the_originals_tolerance_is_right(tmp_path: Path) -> None:
    folder = originals.write(
        tmp_path, "sort", ("make_match_reference(ref_kernel)", "make_match_reference(ref_kernel, atol=0.5)")
    )
    imported(folder, tmp_path / "course")
    listed = problem(load(str(tmp_path / "course")), "sort")
    case = listed.cases(1)[0]
    (candidate,) = listed.oracle(case, listed.inputs(case))["ordered"].candidates
    assert candidate.allowed == pytest.approx(0.5 + 1e-5 * abs(candidate.expected))


def test_a_reference_that_depends_on_its_own_type_keeps_its_tolerance(tmp_path: Path) -> None:
    folder = originals.write(
        tmp_path,
        "prefix_sum",
        ("values.cuda()", "values.half()"),
        ("rtol=1e-3, atol=1e-3", "rtol=0, atol=0"),
    )
    imported(folder, tmp_path / "course")
    assert problem(load(str(tmp_path / "course")), "prefix_sum").tolerance is None
    folder = originals.write(
        tmp_path / "other",
        "prefix_sum",
        ("values.cuda()", "values + 1e6 * torch.finfo(values.dtype).eps"),
        ("rtol=1e-3, atol=1e-3", "rtol=0, atol=0"),
    )
    imported(folder, tmp_path / "other_course")
    tolerance = problem(load(str(tmp_path / "other_course")), "prefix_sum").tolerance
    assert tolerance is not None
    assert "the reference differs in float64 by more than its tolerance: sums" in tolerance.why


def test_a_folder_without_problems_is_refused_with_all_reasons(tmp_path: Path) -> None:
    originals.write(tmp_path / "originals", "sort", ('lang: "py"', 'lang: "cu"'))
    with pytest.raises(ImportFaultError, match=r"(?s)no problem that can be imported.*sort: .*lang is cu"):
        imported(tmp_path / "originals", tmp_path / "course")
    assert not (tmp_path / "course").exists()


def test_others_are_imported_beside_what_is_refused(tmp_path: Path) -> None:
    originals.write(tmp_path / "originals", "sort", ('lang: "py"', 'lang: "cu"'))
    originals.write(tmp_path / "originals", "histogram")
    report = imported(tmp_path / "originals", tmp_path / "course")
    assert [written.file for written in report.written] == ["histogram.py"]
    assert "sort: not imported: " in "\n".join(report.lines)


RIGHT = """
import torch
import triton
import triton.language as tl
from task import input_t, output_t


@triton.jit
def count(counts, values, n, size: tl.constexpr):
    at = tl.program_id(0) * size + tl.arange(0, size)
    inside = at < n
    bins = tl.load(values + at, mask=inside, other=0)
    tl.atomic_add(counts + bins, tl.full([size], 1, tl.int64), mask=inside)


def custom_kernel(data: input_t) -> output_t:
    values, bins = data
    counts = torch.zeros(bins, dtype=torch.int64, device=values.device)
    count[(triton.cdiv(values.shape[0], 256),)](counts, values, values.shape[0], 256)
    return counts
"""


def test_a_right_answer_in_the_originals_form_passes(assignment: Assignment, tmp_path: Path) -> None:
    record = graded(assignment, tmp_path, "histogram", RIGHT)
    assert record.problems[0].verdict is Verdict.PASS, record.problems[0].message
    (note,) = record.submission.notes
    assert note == (
        "histogram: the tolerance of the original counts, rtol 0 and atol 0, and no derived bound: the "
        "formula fails with size = 512, bins = 48: the shape of an output depends on the inputs' numbers"
    )


def test_a_wrong_answer_in_the_originals_form_fails(assignment: Assignment, tmp_path: Path) -> None:
    wrong = RIGHT.replace("triton.cdiv(values.shape[0], 256)", "1")
    (result,) = graded(assignment, tmp_path, "histogram", wrong).problems
    assert result.verdict is Verdict.FAIL
    assert {case.verdict for case in result.correctness.cases} == {Verdict.FAIL}


WRONG_TOTAL = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(total, values, n, size: tl.constexpr):
    at = tl.arange(0, size)
    tl.store(total, tl.sum(tl.load(values + at, mask=at < n - 1, other=0.0), 0))


def custom_kernel(data):
    total = torch.empty((), device=data.device)
    add[(1,)](total, data, data.shape[0], 1024)
    return total
"""


def test_a_single_number_is_judged_like_a_row(assignment: Assignment, tmp_path: Path) -> None:
    (result,) = graded(assignment, tmp_path, "total", WRONG_TOTAL).problems
    assert result.verdict is Verdict.FAIL
    (output,) = next(case for case in result.correctness.cases if case.verdict is Verdict.FAIL).outputs
    assert (output.name, output.bad, output.total) == ("result", 1, 1)


IN_CPP = '''from task import input_t, output_t
from torch.utils.cpp_extension import load_inline

CUDA = """
template <typename scalar_t>
__global__ void sum(scalar_t* total, const scalar_t* left, const scalar_t* right, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) total[at] = left[at] + right[at];
}

torch::Tensor launch(torch::Tensor left, torch::Tensor right, torch::Tensor total) {
  const int n = left.numel();
  AT_DISPATCH_FLOATING_TYPES_AND_HALF(left.scalar_type(), "sum", ([&] {
    sum<scalar_t><<<(n + 255) / 256, 256>>>(
        total.data_ptr<scalar_t>(), left.data_ptr<scalar_t>(), right.data_ptr<scalar_t>(), n);
  }));
  return total;
}
"""
module = load_inline(
    name="sum",
    cpp_sources=["torch::Tensor launch(torch::Tensor left, torch::Tensor right, torch::Tensor total);"],
    cuda_sources=[CUDA],
    functions=["launch"],
    verbose=True,
)


def custom_kernel(data: input_t) -> output_t:
    return module.launch(*data)
'''


def test_an_answer_in_cpp_passes(assignment: Assignment, tmp_path: Path) -> None:
    (result,) = graded(assignment, tmp_path, "vector_sum", IN_CPP).problems
    assert result.correctness.verdict is Verdict.PASS, (result.message, result.build)
    assert result.language == "load_inline"


KERNEL = '''
import torch

CUDA = r"""
#include <cuda_fp16.h>

extern "C" __global__ void sum(__half* total, const __half* left, const __half* right, int n) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) total[at] = __hadd(left[at], right[at]);
}
"""
'''
BY_CUPY = f"""
import cupy as cp
{KERNEL}
kernel = cp.RawKernel(CUDA, "sum")


def custom_kernel(data):
    left, right, total = data
    n = left.numel()
    kernel(((n + 255) // 256,), (256,), tuple(map(cp.asarray, (total, left, right))) + (n,))
    return total
"""
BY_NVRTC = f"""
from cuda.core import Device, LaunchConfig, Program, launch
{KERNEL}
device = Device()
kernel = Program(CUDA, "c++").compile("cubin").get_kernel("sum")


def custom_kernel(data):
    left, right, total = data
    n = left.numel()
    config = LaunchConfig(grid=(n + 255) // 256, block=256)
    launch(device.default_stream, config, kernel, total.data_ptr(), left.data_ptr(), right.data_ptr(), n)
    return total
"""


@pytest.mark.parametrize(("language", "text"), [("cupy", BY_CUPY), ("nvrtc", BY_NVRTC)])
def test_answers_that_compile_at_run_time_are_judged(
    language: str, text: str, assignment: Assignment, tmp_path: Path
) -> None:
    (right,) = graded(assignment, tmp_path, "vector_sum", text).problems
    assert (right.correctness.verdict, right.language) == (Verdict.PASS, language), right.message
    (wrong,) = graded(assignment, tmp_path, "vector_sum", text.replace("(n + 255)", "(n + 254)")).problems
    assert wrong.verdict is Verdict.FAIL
