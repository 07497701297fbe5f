"""Which variables are added to before they are set, and which only look like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import load
from grader.reports.fix_first import fix_first
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions
from grader.run.unset import Unset, unset_variables

if TYPE_CHECKING:
    from pathlib import Path

SPMV, SET = "spmv.cu", "float sum = 0.0f;"
KERNEL = """#include <cmath>
__global__ void other(float *y) { float lost; lost += y[0]; y[0] = lost; }
__global__ void kernel(float *y, int n) {
  BODY
  y[0] = sum;
}
extern "C" void launch(float *y, int n) { kernel<<<1, 32>>>(y, n); }
"""


def unset(body: str) -> list[Unset]:
    return unset_variables({"a.cu": KERNEL.replace("BODY", body).encode()}, "launch")


@pytest.mark.parametrize(
    "body",
    [
        "float sum;\n  for (int i = 0; i < n; i++) sum += y[i];",
        "float sum, rest;\n  rest = 0;\n  sum += rest;",
        "float sum; // = 0\n  if (n) {\n    for (int i = 0; i < n; i++) { sum += y[i]; }\n  }\n  sum = y[1];",
        "float sum;\n  for (int i = 0; i < n; i++) sum = fmaf(y[i], y[i], sum);",
        "int sum;\n  while (n--) { sum++; }",
    ],
)
def test_a_variable_that_nothing_has_set_is_named_with_its_line(body: str) -> None:
    assert unset(body) == [Unset("sum", "a.cu", 4)]


@pytest.mark.parametrize(
    "body",
    [
        "float sum = 0;\n  sum += y[0];",
        "float sum;\n  sum = 0;\n  sum += y[0];",
        "float sum;\n  first(&sum);\n  sum += y[0];",
        "float sum;\n  for (int i = 0; i < n; i++) { if (i) sum += y[i]; else sum = y[i]; }",
        "float sum;\n  for (int i = 0; i < n; i++) { if (i) { sum += y[i]; } if (!i) { sum = y[i]; } }",
        "__shared__ float sum;\n  sum += y[0];",
        "float sum;\n  if (n) sum = 1; else sum = 2;",
    ],
)
def test_what_is_set_or_may_be_is_not_named(body: str) -> None:
    assert not unset(body)


def test_a_report_begins_with_the_variable_and_its_line(tmp_path: Path) -> None:
    assignment = load("first_kernels")
    text = (assignment.reference / SPMV).read_text()
    assert SET in text
    wrong = text.replace("y[row] = sum", "y[row] = 3 * sum")  # a register that nobody sets may be 0
    (tmp_path / SPMV).write_text(wrong.replace(SET, "float sum;", 1))
    problem = next(problem for problem in assignment.problems.values() if problem.file == SPMV)
    case = problem.cases(5)[3].name
    request = GradingRequest(
        tmp_path, assignment, (problem.id,), GradingOptions("sim", memory="device"), 5, cases=(case,)
    )
    (result,) = grade(request).problems
    fix = fix_first(result)
    assert fix is not None
    line = text[: text.index(SET)].count("\n") + 1
    assert fix.lines == (
        "The variable sum is added to before anything has set it: it begins with any number",
        f"{SPMV}:{line}: float sum;",
        "Set it where it is declared.",
    )
    assert "expected" in fix.detail
