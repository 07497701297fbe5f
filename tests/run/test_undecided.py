"""What the simulator cannot run is undecided where a case reaches it, and no better than wrong."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import load
from grader.records.gaps import GapKind
from grader.records.verdict import Verdict
from grader.reports import console
from grader.run import grading
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path

    from grader.records.record import ProblemResult, Record

pytestmark = pytest.mark.usefixtures("ptx_only")

RULES = """
id = "doubling"
title = "One kernel"

[group_points]
"memory and concurrency" = 2.0

[[problems]]
id = "twice"
title = "Doubling"
correctness = 6.0
performance = 4.0
target = 1.0
"""

PROBLEM = '''"""y = 2 x."""

import numpy as np

from grader.problems.problem import (
    ArrayParameter, Candidate, Case, Expectation, Inputs, KernelProblem, Role, ScalarParameter,
    StreamParameter,
)


def inputs(case):
    n = case.sizes["n"]
    x = np.random.default_rng(case.seed).standard_normal(n).astype(np.float32)
    return Inputs({"x": x}, {"y": (n,)}, {"n": n})


PROBLEM = KernelProblem(
    id="twice",
    file="twice.cu",
    entry_point="launch_twice",
    parameters=(
        ArrayParameter("y", Role.OUTPUT),
        ArrayParameter("x", Role.INPUT),
        ScalarParameter("n", "int"),
        StreamParameter("stream"),
    ),
    groups=("short", "long"),
    cases=lambda seed: tuple(
        Case(f"{n}", "short" if n < 1000 else "long", {"n": n}, "normal", seed, orders=1)
        for n in (5, 300, 1000, 3000)
    ),
    timing_cases=lambda seed: (),
    inputs=inputs,
    oracle=lambda case, given: {
        "y": Expectation((Candidate(2 * given.wide("x"), np.zeros(case.sizes["n"])),))
    },
    minimal_bytes=lambda case: 0,
)
'''
KERNEL = """#include <cuda_runtime.h>
__global__ void twice(float* y, const float* x, int n, cudaTextureObject_t texture) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (TEXTURE) y[0] = tex1Dfetch<float>(texture, i);
  if (i < n) y[i] = FACTOR * x[i];
}
extern "C" void launch_twice(float* y, const float* x, int n, cudaStream_t stream) {
  CALL
  twice<<<(n + 127) / 128, 128, 0, stream>>>(y, x, n, 0);
}
"""
ARRAY = """
  cudaArray_t array;
  cudaChannelFormatDesc format{32, 0, 0, 0, cudaChannelFormatKindFloat};
  if (n > 2000) cudaMallocArray(&array, &format, 32);"""


def grade(folder: Path, *, texture: str = "texture", factor: str = "2", call: str = "") -> Record:
    kernel = KERNEL.replace("TEXTURE", texture).replace("FACTOR", factor).replace("CALL", call)
    files = {
        "doubling/assignment.toml": RULES,
        "doubling/problems/twice.py": PROBLEM,
        "doubling/student_template/HANDOUT.md": "Double every element.\n",
        "hw/twice.cu": kernel,
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    request = grading.GradingRequest(
        folder / "hw",
        load(folder / "doubling"),
        ("twice",),
        GradingOptions("sim", "process", "device"),
        seed=1,
    )
    return grading.grade(request)


def verdicts(problem: ProblemResult) -> list[Verdict]:
    return [case.verdict for case in problem.correctness.cases]


def printed(record: Record) -> str:
    """The console's text, without the breaks of its lines."""
    text = io.StringIO()
    console.show(record, text)
    return " ".join(text.getvalue().split())


@pytest.mark.parametrize(("factor", "verdict", "earned"), [("2", Verdict.PASS, 6), ("3", Verdict.FAIL, 0)])
def test_what_no_case_reaches_costs_nothing_and_hides_nothing(
    factor: str, verdict: Verdict, earned: float, tmp_path: Path
) -> None:
    record = grade(tmp_path, factor=factor)
    (problem,) = record.problems
    assert set(verdicts(problem)) == {verdict}
    assert (problem.verdict, problem.points.earned, problem.points.decided >= 4) == (verdict, earned, True)
    assert not any(case.gaps for case in problem.correctness.cases)


def test_a_case_that_reaches_it_is_undecided_and_the_others_are_judged(tmp_path: Path) -> None:
    record = grade(tmp_path, texture="n > 2000")
    (problem,) = record.problems
    assert verdicts(problem) == [Verdict.PASS] * 3 + [Verdict.NOT_MEASURED]
    assert problem.verdict is Verdict.NOT_MEASURED
    assert (problem.points.earned, problem.points.decided, record.exit_code) == (2, 2, 0)
    (gap,) = problem.correctness.cases[3].gaps
    assert (gap.kind, gap.feature, gap.file, gap.line) == (GapKind.INSTRUCTION, "textures", "twice.cu", 4)
    text = printed(record)
    assert "Undecided: the simulator cannot run textures" in text
    assert "twice.cu:4: if (n > 2000) y[0] = tex1Dfetch" in text
    assert "Read the array itself" in text
    assert "Score: 2.0/2.0 (10.0 possible)" in text


def test_it_is_no_better_than_wrong_where_the_other_cases_are_wrong(tmp_path: Path) -> None:
    (problem,) = grade(tmp_path, texture="n > 2000", factor="3").problems
    assert verdicts(problem) == [Verdict.FAIL] * 3 + [Verdict.NOT_MEASURED]
    assert (problem.verdict, problem.points.earned) == (Verdict.FAIL, 0)
    assert problem.points.decided >= 4


def test_a_call_of_the_runtime_that_is_lacking_is_named_with_its_line(tmp_path: Path) -> None:
    record = grade(tmp_path, call=ARRAY)
    (problem,) = record.problems
    assert verdicts(problem) == [Verdict.PASS] * 3 + [Verdict.NOT_MEASURED]
    (gap,) = problem.correctness.cases[3].gaps
    assert (gap.kind, gap.subject, gap.file) == (GapKind.CALL, "cudaMallocArray", "twice.cu")
    assert gap.source is not None
    assert "cudaMallocArray(" in gap.source.lines[gap.line - gap.source.first]
    assert "Allocate with cudaMalloc, and pass the pointer to the kernel." in printed(record)
