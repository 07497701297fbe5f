"""Tests that need a GPU are skipped, visibly, where none works; all can be interrupted, and can call nvcc."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import Assignment
from grader.devices import gpu
from grader.devices.sim import Sim
from grader.languages.cuda.toolchain import ToolchainError, find
from grader.problems.grid import MAGNITUDES
from grader.problems.problem import KernelProblem
from grader.simulator.driver import LIBRARIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.problems.problem import Case, Problem

# Jobs that a shell runs in the background ignore Ctrl-C, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure() -> None:
    """Puts the nvcc that the grader takes on PATH: it can be a wheel, or lie in CUDA_HOME.

    Raises:
        UsageError: there is none, or no g++.
    """
    if shutil.which("nvcc") is None:
        try:
            toolchain = find()
        except ToolchainError as error:
            raise pytest.UsageError(str(error)) from error
        os.environ["PATH"] += f":{toolchain.nvcc.parent}"
        # The wheels have no libcudart.so, and nvcc does not look where their other libraries are.
        os.environ["NVCC_APPEND_FLAGS"] = f"-L{LIBRARIES} -L{toolchain.libraries}"


def pytest_collection_finish() -> None:
    """Leave modules and tests out when garbage is looked for: they stay until the end."""
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let plugins that are asked for a summary see all objects again."""
    gc.unfreeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Those begin first, so that at the end no test process waits for one of them.
    items.sort(key=lambda item: "long" not in item.keywords)
    marked = [item for item in items if "gpu" in item.keywords]
    found = gpu.probe(find().runtime) if marked else None
    if found is not None and not found.usable:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=f"no GPU works here: {found.reason}"))


@pytest.fixture
def ptx_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds for the sim without machine code, which nobody runs: ptxas takes half of a build."""
    monkeypatch.setattr(Sim, "architecture", "compute_80")


@pytest.fixture
def usual_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves those of grids out, and those that run in one order: half of the time of a grading."""
    whole = Assignment.__dict__["problems"]

    def usual(assignment: Assignment) -> Mapping[str, Problem]:
        return {name: _usual(problem) for name, problem in whole.__get__(assignment).items()}

    monkeypatch.setattr(Assignment, "problems", property(usual))


def _usual(problem: Problem) -> Problem:
    if not isinstance(problem, KernelProblem):
        return problem

    def cases(seed: int) -> tuple[Case, ...]:
        return tuple(case for case in problem.cases(seed) if case.orders is None and case.group != MAGNITUDES)

    groups = {case.group for case in cases(0)}
    return replace(problem, cases=cases, groups=tuple(group for group in problem.groups if group in groups))
