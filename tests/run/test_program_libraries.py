"""Libraries of CUDA in programs: replacements compute what NVIDIA's do, and what is not there is named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import read
from grader.records.mangled import demangled
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from grader.records.record import ProblemResult

pytestmark = pytest.mark.usefixtures("ptx_only")

RULES = """
id = "calls"
title = "Calls of libraries"

[[problems]]
id = "calls"
title = "Calls"
correctness = 10.0

[problems.program]
files = ["calls.cu"]
"""

OF_CUBLAS = """\
axpy 12 16 36 32 60 48
strides 17 19 37 32 60 48
scal 34 19 74 32 120 48
copy 1 -2 3 -4 5 -6
reductions 91 5 21 6
device pointers 273
gemv 531 642 nan
gemv transposed 23 63 265
gemm 37 46 46 58 7
gemm transposed 5 11 17 11 25 39 17 39 61
batches 21 43 65
halves 7 10 15 22
geam 2 6 10 4 8 12
ger 2 11 11 101
double 5
rows 1 3
cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a.at, 1, a.at, 2, &two, c.at, 2): \
CUBLAS_STATUS_INVALID_VALUE
"""

AXPY = """
#include <cublas_v2.h>
#include <cstdio>
int main() {
  cublasHandle_t handle;
  cublasCreate(&handle);
  float one = 1, *x, *y, host[4] = {1, 2, 3, 4};
  cudaMalloc(&x, 16);
  cudaMalloc(&y, 16);
  cudaMemcpy(x, host, 16, cudaMemcpyHostToDevice);
  cudaMemcpy(y, host, 16, cudaMemcpyHostToDevice);
  cublasSaxpy(handle, 4, &one, x, 1, y, 1);
  cudaMemcpy(host, y, 16, cudaMemcpyDeviceToHost);
  printf("%g\\n", host[3]);
  cublasDestroy(handle);
}
"""


def graded(folder: Path, text: str, libraries: str, expected: str = "8") -> ProblemResult:
    """The result of a program for an assignment that allows these libraries."""
    assignment, ann = folder / "assignment", folder / "ann"
    (assignment / "cases" / "one").mkdir(parents=True)
    (assignment / "student_template").mkdir()
    (assignment / "assignment.toml").write_text(RULES + libraries)
    (assignment / "cases" / "one" / "expected.txt").write_text(expected)
    ann.mkdir()
    (ann / "calls.cu").write_text(text)
    request = grading.GradingRequest(ann, read(assignment), ("calls",), GradingOptions("sim"), 1)
    return grading.grade(request).problems[0]


def test_cublas_computes_what_nvidia_s_documentation_says(tmp_path: Path) -> None:
    text = Path(__file__).with_name("cublas_calls.cu").read_text()
    result = graded(tmp_path, text, 'libraries = ["cublas"]', OF_CUBLAS)
    assert result.correctness.cases[0].diagnosis == ""
    assert result.verdict is Verdict.PASS


def test_checks_watch_the_kernels_of_a_library(tmp_path: Path) -> None:
    text = AXPY.replace("cublasSaxpy(handle, 4", "cublasSaxpy(handle, 5")
    result = graded(tmp_path, text, 'libraries = ["cublas"]')
    findings = [finding for check in result.checks for finding in check.findings]
    assert {demangled(finding.kernel) for finding in findings} == {"cublas::axpy<float>"}
    assert {finding.file for finding in findings} == {"cublas.cu"}
    assert result.verdict is Verdict.FAIL


def test_a_library_that_is_not_allowed_is_named_with_the_line(tmp_path: Path) -> None:
    result = graded(tmp_path, AXPY, "")
    assert result.verdict is Verdict.FAIL
    assert result.message == (
        "calls.cu:2 includes cublas_v2.h: this assignment does not allow the library cublas (it allows "
        "thrust and cub)"
    )


def test_thrust_is_allowed_unless_the_assignment_says_otherwise(tmp_path: Path) -> None:
    text = """/*
    #include <thrust/sort.h> */
    #include <thrust/device_vector.h>
    #include <cstdio>
    int main() { thrust::device_vector<int> x(2, 4); printf("%d\\n", x[0] + x[1]); }"""
    assert graded(tmp_path / "usual", text, "").verdict is Verdict.PASS
    result = graded(tmp_path / "none", text, "libraries = []")
    assert result.message == (
        "calls.cu:3 includes thrust/device_vector.h: this assignment does not allow the library thrust (it "
        "allows none)"
    )


@pytest.mark.parametrize(
    ("build", "file", "text"),
    [
        ("make", "Makefile", "calls: calls.cu\n\tnvcc -o $@ $< -lcublas\n"),
        (
            "cmake",
            "CMakeLists.txt",
            (
                "cmake_minimum_required(VERSION 3.22)\nproject(calls LANGUAGES CXX CUDA)\n"
                "find_package(CUDAToolkit REQUIRED)\nadd_executable(calls calls.cu)\n"
                "target_link_libraries(calls PRIVATE CUDA::cublas)\n"
            ),
        ),
    ],
)
def test_projects_find_the_library(tmp_path: Path, build: str, file: str, text: str) -> None:
    (tmp_path / "assignment").mkdir()
    (tmp_path / "assignment" / file).write_text(text)
    rules = f'libraries = ["cublas"]\n{build} = "calls"\ngiven = ["{file}"]'
    result = graded(tmp_path, AXPY, rules)
    assert result.message == ""
    assert result.verdict is Verdict.PASS


def test_a_function_that_the_simulator_lacks_is_named(tmp_path: Path) -> None:
    text = AXPY.replace("cublasSaxpy(handle, 4, &one, x, 1, y, 1)", "cublasSrot(handle, 4, x, 1, y, 1, x, y)")
    result = graded(tmp_path, text, 'libraries = ["cublas"]')
    assert result.message == (
        "cublasSrot is none of the functions of cublas that the simulator has: use others, or write a kernel "
        "(docs/programs.md lists them)"
    )
