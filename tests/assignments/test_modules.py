from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.assignments.modules import defined, load_module, load_problems
from grader.assignments.rules import AssignmentError

if TYPE_CHECKING:
    from pathlib import Path


def folder(parent: Path, name: str, **modules: str) -> Path:
    made = parent / name / "problems"
    made.mkdir(parents=True)
    for module, text in modules.items():
        (made / f"{module}.py").write_text(text)
    return made


def test_two_folders_may_have_modules_of_the_same_name(tmp_path: Path) -> None:
    first = folder(tmp_path, "first", shapes="SIZE = 1\n", row="from .shapes import SIZE\n")
    second = folder(tmp_path, "second", shapes="SIZE = 2\n", row="from .shapes import SIZE\n")
    assert (load_module(first, "row").SIZE, load_module(second, "row").SIZE) == (1, 2)


def test_a_module_that_fails_is_named_with_the_line(tmp_path: Path) -> None:
    made = folder(tmp_path, "one", row="import math\nSIZE = math.sqrt(-1)\n")
    with pytest.raises(AssignmentError, match=r"problems/row\.py:2: ValueError: "):
        load_module(made, "row")


def test_the_errors_of_all_modules_are_told_at_once(tmp_path: Path) -> None:
    made = folder(tmp_path, "one", row="SIZE = 1 / 0\n", column="import math\n\nPROBLEM = None\n")
    with pytest.raises(AssignmentError) as raised:
        load_problems([made], ["row", "column"])
    assert str(raised.value).splitlines() == [
        f"{made}/row.py:1: ZeroDivisionError: division by zero",
        f"{made}/column.py: PROBLEM must be a Problem with the id 'column'",
    ]


FORMULA = """from grader.problems.contents import real
from grader.problems.formula import Range, problem


def total(x):
    return x * x[0].item()


PROBLEM = problem(
    id="row",
    file="row.cu",
    launcher="row(float* y, const float* x, int n, cudaStream_t stream)",
    formula=total,
    inputs=lambda n: {"x": real(n)},
    sizes={"n": Range(1, 1000)},
)
"""


def test_an_error_of_a_formula_names_the_line_of_the_formula(tmp_path: Path) -> None:
    made = folder(tmp_path, "one", row=FORMULA)
    with pytest.raises(AssignmentError, match=r"row\.py:6: the formula fails with n = \d+: it asks for one"):
        load_problems([made], ["row"])


@pytest.mark.parametrize("text", ["PROBLEM = 1\n", "NO_PROBLEM = 1\n"])
def test_a_module_without_a_problem_of_its_name_is_refused(tmp_path: Path, text: str) -> None:
    made = folder(tmp_path, "one", row=text)
    with pytest.raises(AssignmentError, match=r"row\.py: PROBLEM must be a Problem with the id 'row'"):
        load_problems([made], ["row"])


def test_a_name_without_a_module_is_left_out_and_others_are_suggested(tmp_path: Path) -> None:
    made = folder(tmp_path, "one", row="\nPROBLEM = 1\n", shapes="")
    assert load_problems([made], ["column"]) == {}
    assert defined([made]) == ["row"]
