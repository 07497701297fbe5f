"""What templates give: one module that calls launchers, and tables of what problems ask for."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from grader.assignments.assignment import load
from grader.problems.dtypes import DTYPES
from grader.problems.problem import ArrayParameter, KernelProblem, Role, ScalarParameter

ASSIGNMENTS = Path(__file__).parents[2] / "assignments"


def declared(problem: KernelProblem) -> str:
    """The parameters as C has them."""
    parts = []
    for parameter in problem.parameters:
        if isinstance(parameter, ArrayParameter):
            const = "const " if parameter.role is Role.INPUT else ""
            parts.append(f"{const}{DTYPES[parameter.dtype].spellings[0]}* {parameter.name}")
        else:
            kind = parameter.ctype if isinstance(parameter, ScalarParameter) else "cudaStream_t"
            parts.append(f"{kind} {parameter.name}")
    return ", ".join(parts)


@pytest.mark.parametrize("name", ["llm_systems_3", "rmsnorm", "rglru"])
def test_a_template_declares_the_launchers_as_its_problems_do(name: str) -> None:
    assignment = load(str(ASSIGNMENTS / name))
    table = runpy.run_path(str(assignment.template / "launchers.py"))
    kernels = [one for one in assignment.problems.values() if isinstance(one, KernelProblem)]
    asked = [typed for problem in kernels for typed in problem.launchers.values() or (problem,)]
    assert table["LAUNCHERS"] == {one.entry_point: declared(one) for one in asked}
    assert set(table["SOURCES"]) == {one.file for one in kernels}


def test_templates_call_launchers_by_the_same_module() -> None:
    folders = [load(str(ASSIGNMENTS / name)).template for name in ("llm_systems_3", "rmsnorm", "rglru")]
    assert len({(folder / "kernels.py").read_bytes() for folder in folders}) == 1
