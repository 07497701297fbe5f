"""Kernels that are wrong where only their own code tells: between two constants, beyond a cap or a buffer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import load
from grader.judge.coverage.search import MARKED, TOLD_APART
from grader.records.coverage import Way
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from grader.assignments.assignment import Assignment
    from grader.problems.problem import Problem
    from grader.records.record import CaseResult, ProblemResult

pytestmark = pytest.mark.usefixtures("ptx_only")

ADDITION = """#include <cuda_runtime.h>
#include <algorithm>
__global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}
__global__ void wrong(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] - y[i];
}
#define RUN(kernel, grid) kernel<<<grid, 256, 0, stream>>>(z, x, y, n)
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  int blocks = (n + 255) / 256;
"""
LAUNCHERS = {
    "a narrow interval": """
  if (n >= 70000)
    if (n <= 70100) RUN(wrong, blocks); else RUN(add, blocks);
  else
    RUN(add, blocks);
""",
    "a cap on the grid": """
  RUN(add, std::min(blocks, 300));
""",
    "a static buffer": """
  static float* kept = nullptr;
  if (!kept) cudaMalloc(&kept, 150000 * sizeof(float));
  n = n < 150000 ? n : 150000;
  RUN(add, blocks);
""",
}
"""The rest of a wrong launcher."""
DEVICE = """#include <cuda_runtime.h>
__global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + (n > 30000 && n < 40000 ? -y[i] : y[i]);
}
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(z, x, y, n);
}
"""
RIGHT = """
  if (cudaPeekAtLastError() != cudaSuccess) {
    return;
  }
  if (n < 100)
    RUN(add, blocks);
  else if (n % 4 == 0 && n <= 65536)
    RUN(add, (n + 255) / 256);
  else if (n > 1 << 17)
    RUN(add, (n - 1) / 256 + 1);
  else
    RUN(add, std::max(blocks, 77));
"""
TRANSPOSE = """#include <cuda_runtime.h>
__global__ void transpose(float* out, const float* in, int rows, int columns, long elements) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < elements) out[i % columns * rows + i / columns] = in[i];
}
extern "C" void launch_transpose(float* out, const float* in, int rows, int columns, cudaStream_t stream) {
  long elements = (long)rows * columns;
  if (elements > 300000 && rows > 1 && columns > 1) elements -= 1;
  transpose<<<(elements + 255) / 256, 256, 0, stream>>>(out, in, rows, columns, elements);
}
"""

SENTINEL = """#include <cuda_runtime.h>
__global__ void add(float* z, const float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (x[i] == MARK) z[i] = 0;  // not there yet
  else z[i] = x[i] + y[i];
}
extern "C" void launch_vector_add(float* z, const float* x, const float* y, int n, cudaStream_t stream) {
  add<<<(n + 255) / 256, 256, 0, stream>>>(z, x, y, n);
}
"""


class FewCases(Bench):
    """What all gradings here share: they meet the smallest case of each group."""

    def problems(self, assignment: Assignment, seed: int) -> Mapping[str, Problem]:
        known = super().problems(assignment, seed)
        return {name: _few(known[name], seed) for name in ("vector_add", "transpose")}


def _few(problem: Problem, seed: int) -> Problem:
    cases = sorted(problem.cases(seed), key=lambda case: max(case.sizes.values()))
    small = tuple({case.group: case for case in reversed(cases) if max(case.sizes.values()) < 5000}.values())
    return replace(problem, cases=lambda _: small, groups=tuple(case.group for case in small))


@cache
def bench() -> Bench:
    return FewCases(remembers=True)


def graded(folder: Path, code: str, problem: str = "vector_add") -> ProblemResult:
    (folder / f"{problem}.cu").write_text(code)
    request = grading.GradingRequest(
        folder, load("first_kernels"), (problem,), GradingOptions("sim", memory="device"), seed=1
    )
    (result,) = grading.grade(request, bench=bench()).problems
    return result


def followed(result: ProblemResult) -> list[CaseResult]:
    return [case for case in result.correctness.cases if case.group == TOLD_APART]


def assert_found(result: ProblemResult, group: str = TOLD_APART) -> None:
    """Nothing but cases of ``group``, which follow the code, is wrong; it costs what a group costs."""
    wrong = [case for case in result.correctness.cases if case.verdict is not Verdict.PASS]
    assert wrong
    assert {case.group for case in wrong} == {group}
    (lost,) = [group for group in result.correctness.groups if group.verdict is not Verdict.PASS]
    assert (lost.name, lost.earned) == (group, 0)
    assert result.verdict is Verdict.FAIL
    assert lost.possible > 0
    assert abs(result.points.earned - (6 - lost.possible)) < 0.05


@pytest.mark.parametrize("kind", LAUNCHERS)
def test_host_code_that_is_wrong_for_some_sizes_is_found(kind: str, tmp_path: Path) -> None:
    assert_found(graded(tmp_path, ADDITION + LAUNCHERS[kind] + "}\n"))


def test_a_kernel_that_is_wrong_for_some_sizes_is_found(tmp_path: Path) -> None:
    assert_found(graded(tmp_path, DEVICE))


def test_a_product_of_sizes_is_found(tmp_path: Path) -> None:
    assert_found(graded(tmp_path, TRANSPOSE, "transpose"))


@pytest.mark.parametrize("mark", ["-31.25f", "__uint_as_float(0xababababu)"])
def test_a_number_that_means_nothing_yet_is_met(mark: str, tmp_path: Path) -> None:
    assert_found(graded(tmp_path, SENTINEL.replace("MARK", mark)), MARKED)


def test_right_code_passes_with_every_constant_met_and_keeps_its_groups(tmp_path: Path) -> None:
    result = graded(tmp_path, ADDITION + RIGHT + "}\n")
    assert (result.verdict, result.points.earned) == (Verdict.PASS, 6)
    assert TOLD_APART not in {group.name for group in result.correctness.groups}
    sizes = {int(case.name.partition(",")[0]) for case in followed(result)}
    assert {100, 65536, (1 << 17) + 1} <= sizes
    line = ADDITION.count("\n") + 3
    never = [one for one in result.correctness.unreached if not one.kernel and one.constant is None]
    assert [(one.file, one.line, one.side) for one in never] == [("vector_add.cu", line, Way.TAKEN)]
