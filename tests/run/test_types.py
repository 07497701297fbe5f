"""A problem over several element types: each has a launcher of its own, and costs its own cases alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import load
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import ProblemResult

pytestmark = pytest.mark.usefixtures("ptx_only")

RULES = """
id = "typed"
title = "One kernel, two types"

[group_points]
"memory and concurrency" = 0.0

[[problems]]
id = "twice"
title = "Doubling"
correctness = 6.0
performance = 4.0
target = 1.0
"""

PROBLEM = '''"""y = 2 x."""

import numpy as np

from grader.problems.distributions import generator
from grader.problems.dtypes import DTYPES
from grader.problems.problem import (
    ANY_TYPE, ArrayParameter, Candidate, Case, Expectation, Inputs, KernelProblem, Role, ScalarParameter,
    StreamParameter, several_types,
)

TYPES = ("float32", "float16")


def inputs(case):
    n = case.sizes["n"]
    x = generator(case.seed).standard_normal(n).astype(DTYPES[case.dtype].storage)
    return Inputs({"x": x}, {"y": (n,)}, {"n": n})


PROBLEM = several_types(
    KernelProblem(
        id="twice",
        file="twice.cu",
        entry_point="launch_twice",
        parameters=(
            ArrayParameter("y", Role.OUTPUT, ANY_TYPE),
            ArrayParameter("x", Role.INPUT, ANY_TYPE),
            ScalarParameter("n", "int"),
            StreamParameter("stream"),
        ),
        groups=TYPES,
        cases=lambda seed: tuple(
            Case(f"{n} of {dtype}", dtype, {"n": n}, "normal", seed, dtype=dtype)
            for dtype in TYPES for n in (1, 300)
        ),
        timing_cases=lambda seed: (),
        inputs=inputs,
        oracle=lambda case, given: {
            "y": Expectation((Candidate(2 * given.wide("x"), np.zeros(case.sizes["n"])),))
        },
        minimal_bytes=lambda case: 0,
    ),
    TYPES,
)
'''

KERNEL = """#include <cuda_fp16.h>
template <class T>
__global__ void twice(T* y, const T* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + x[i];
}
"""
LAUNCHER = """extern "C" void launch_twice_{0}({1}* y, const {1}* x, int n, cudaStream_t stream) {{
  twice<<<(n + 127) / 128, 128, 0, stream>>>(y, x, n);
}}
"""
FLOAT, HALF = LAUNCHER.format("float32", "float"), LAUNCHER.format("float16", "__half")


def grade(folder: Path, *launchers: str) -> ProblemResult:
    files = {
        "typed/assignment.toml": RULES,
        "typed/problems/twice.py": PROBLEM,
        "typed/student_template/HANDOUT.md": "Double every element.\n",
        "hw/twice.cu": "".join((KERNEL, *launchers)),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    request = grading.GradingRequest(
        folder / "hw", load(folder / "typed"), ("twice",), GradingOptions("sim", "process"), seed=1
    )
    return grading.grade(request).problems[0]


def test_all_types_are_judged(tmp_path: Path) -> None:
    result = grade(tmp_path, FLOAT, HALF)
    assert (result.verdict, result.points.earned, result.notes) == (Verdict.PASS, 6, [])


def test_a_wrong_type_costs_its_own_cases(tmp_path: Path) -> None:
    result = grade(tmp_path, FLOAT, HALF.replace("(y, x, n)", "(y, x, n - 1)"))
    assert {case.verdict for case in result.correctness.cases if case.group == "float32"} == {Verdict.PASS}
    assert {case.verdict for case in result.correctness.cases if case.group == "float16"} == {Verdict.FAIL}


@pytest.mark.parametrize(
    ("half", "said"),
    [
        ("", 'twice.cu has no function extern "C" launch_twice_float16.'),
        (HALF.replace("__half", "float"), "takes 4 arguments (float* y, const float* x, int n"),
    ],
    ids=["missing", "of the wrong type"],
)
def test_a_type_without_a_launcher_costs_its_own_cases(half: str, said: str, tmp_path: Path) -> None:
    result = grade(tmp_path, FLOAT, half)
    assert (result.verdict, result.points.earned) == (Verdict.FAIL, 3)
    assert {said in case.message for case in result.correctness.cases if case.group == "float16"} == {True}


def test_a_file_without_any_launcher_is_not_judged(tmp_path: Path) -> None:
    result = grade(tmp_path)
    assert result.points.earned == 0
    assert "launch_twice_float32" in result.message
