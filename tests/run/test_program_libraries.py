"""Libraries of CUDA in programs: replacements compute what NVIDIA's do, and what is not there is named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import read
from grader.records.mangled import demangled
from grader.records.verdict import Verdict
from grader.reports.fix_first import fix_first
from grader.run import grading
from grader.run.options import GradingOptions
from grader.simulator.simulate import EXIT_FINDINGS

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

OF_CUSPARSE = """\
csr 7 6 43
alpha, beta 15 13 87
transposed 15 8 19 20
transposed, beta 0 13 6 17 18
csc 7 6 43
csc transposed 13 6 17 18
coo from one 8 7 44
coo transposed 13 6 17 18
64 bits 7 6 43
matrix 7 6 43 0 3 6
matrix by rows 7 0 6 3 43 6
cusparseSpMM(handle, plain, plain, &one, csr, of_c, &zero, of_c, CUDA_R_32F, \
CUSPARSE_SPMM_ALG_DEFAULT, nullptr): \
CUSPARSE_STATUS_INVALID_VALUE
"""

# The first four numbers are those of Random123's known answers for Philox4x32-10.
OF_CURAND = """\
6627e8d5 e169c58d bc57ac4c 9b00dbd8 bc57ac4c
uniform 0.5 0.3
same seed, same numbers: 1
next numbers are others: 1
uniform double 0.5 0.3
normal 10.0 3.0
normal double -5.0 2.0
log normal 1.1 0.6
poisson 4.0 2.0
curandGenerateNormal(generator, numbers.at, 3, 0, 1): 105
of kernels 0.5 0.3
normal 0.0 1.0
normal double 1.0 2.0
poisson 40.0 6.3
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


@pytest.mark.parametrize(
    ("library", "expected"), [("cublas", OF_CUBLAS), ("cusparse", OF_CUSPARSE), ("curand", OF_CURAND)]
)
def test_a_library_computes_what_nvidia_s_documentation_says(
    tmp_path: Path, library: str, expected: str
) -> None:
    here = Path(__file__)
    text = here.with_name("device_array.h").read_text().replace("#pragma once", "")
    text += here.with_name(f"{library}_calls.cu").read_text().replace('#include "device_array.h"', "")
    result = graded(tmp_path, text, f'libraries = ["{library}"]', expected)
    assert result.correctness.cases[0].diagnosis == ""
    assert [finding.kind for check in result.checks for finding in check.findings] == []
    assert result.verdict is Verdict.PASS


def test_checks_watch_the_kernels_of_a_library(tmp_path: Path) -> None:
    text = AXPY.replace("cublasSaxpy(handle, 4", "cublasSaxpy(handle, 5")
    result = graded(tmp_path, text, 'libraries = ["cublas"]')
    findings = [finding for check in result.checks for finding in check.findings]
    assert {demangled(finding.kernel) for finding in findings} == {"cublas::axpy<float>"}
    assert {place.file for finding in findings for place in finding.places} == {"cublas.cu"}
    assert {finding.file for finding in findings} == {"calls.cu"}
    assert result.verdict is Verdict.FAIL


OUTSIDE = """#include <cstdio>
#include <cublas_v2.h>
#include <thrust/device_ptr.h>
#include <thrust/reduce.h>
int main() {
  float *x, y = 1, two = 2;
  cublasHandle_t handle;
  cublasCreate(&handle);
  cudaMalloc(&x, 4);
  cudaMemcpy(x, &y, 4, cudaMemcpyDefault);
  thrust::device_ptr<float> begin(x);
  CALL
  cudaMemcpy(&y, x, 4, cudaMemcpyDefault);
  printf("%g\\n", y);
  cudaFree(x);
  cublasDestroy(handle);
}
"""


@pytest.mark.parametrize(
    ("call", "library"),
    [("cublasSscal(handle, 2, &two, x, 1);", "cuBLAS"), ("y = thrust::reduce(begin, begin + 3);", "Thrust")],
)
def test_a_finding_in_a_library_is_at_the_call(tmp_path: Path, call: str, library: str) -> None:
    result = graded(tmp_path, OUTSIDE.replace("CALL", call), 'libraries = ["cublas", "thrust"]\n')
    (finding,) = (each for check in result.checks for each in check.findings if each.kind == "global_oob")
    assert (finding.file, finding.line) == ("calls.cu", 12)
    fix = fix_first(result)
    assert fix is not None
    assert call in fix.text
    assert fix.do.startswith(
        f"{library} does this in a call of yours: compare the sizes, strides and pointers"
    )


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
    assert result.message == "cublasSrot is none of the functions of cublas that the simulator has"
    assert result.verdict is Verdict.NOT_MEASURED
    assert result.points.decided == 0
    first = fix_first(result)
    assert first is not None
    assert (first.fault, first.undecided) == (result.message, True)
    assert first.do.startswith("Use other functions, or write a kernel")
    assert first.line == text.splitlines().index("  cublasSrot(handle, 4, x, 1, y, 1, x, y);") + 1


def test_what_a_library_lacks_is_undecided(tmp_path: Path) -> None:
    text = """
#include <curand.h>
#include <cstdio>
int main() {
  curandGenerator_t generator = nullptr;
  float host[4] = {}, *x;
  cudaMalloc(&x, 16);
  cudaMemset(x, 0, 16);
  curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32);
  curandGenerateUniform(generator, x, 4);
  cudaMemcpy(host, x, 16, cudaMemcpyDeviceToHost);
  printf("%g\\n", host[0]);
}
"""
    result = graded(tmp_path, text, 'libraries = ["curand"]')
    (case,) = result.correctness.cases
    assert (case.verdict, case.gaps[0].subject) == (
        Verdict.NOT_MEASURED,
        "curandCreateGenerator_quasirandom",
    )


def test_grader_simulate_gives_a_program_the_libraries_that_it_includes(tmp_path: Path) -> None:
    (tmp_path / "blas.h").write_text("#include <cublas_v2.h>")
    (tmp_path / "calls.cu").write_text(
        AXPY.replace("#include <cublas_v2.h>", '#include "blas.h"').replace("handle, 4", "handle, 5")
    )
    command = [sys.executable, "-m", "grader", "simulate", str(tmp_path / "calls.cu")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert ended.stdout.splitlines()[0] == "8"
    assert ended.returncode == EXIT_FINDINGS
    assert "cublas.cu" in ended.stderr
    assert "global_oob" in ended.stderr
