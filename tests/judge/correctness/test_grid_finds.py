"""Kernels that are wrong between two sizes, or from two on: cases by hand miss them, the grid does not."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from by_hand import by_hand

from grader.assignments.assignment import load
from grader.devices.device import Memory, Schedule
from grader.devices.sim import Sim
from grader.judge.correctness.cases import judge
from grader.problems.grid import MAGNITUDES
from grader.problems.problem import KernelProblem
from grader.records.verdict import Verdict
from grader.sandbox.process import ProcessSandbox
from grader.simulator.driver import LIBRARIES, RUNTIME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.problems.problem import Case

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

ASSIGNMENTS = Path(__file__).parents[3] / "assignments"
WRONG = {
    "vector_add": "first_kernels",
    "argmax": "first_kernels",
    "histogram": "first_kernels",
    "spmv": "first_kernels",
    "matmul": "first_kernels",
    "transpose": "first_kernels",
    "softmax_backward": "llm_systems_3",
}
SEED = 3


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("grid") / "grid_finds.so"
    command = "nvcc -shared -Xcompiler -fPIC -gencode arch=compute_80,code=compute_80 -lineinfo --no-compress"
    subprocess.run(
        [
            *command.split(),
            "-cudart",
            "shared",
            f"-L{LIBRARIES}",
            "-o",
            target,
            Path(__file__).with_name("grid_finds.cu"),
        ],
        check=True,
        capture_output=True,
    )
    return target


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_between_the_cases_by_hand_is_wrong_in_the_grid(name: str, library: Path) -> None:
    problem = load(str(ASSIGNMENTS / WRONG[name])).problems[name]
    assert isinstance(problem, KernelProblem)

    def wrong(cases: Sequence[Case]) -> list[str]:
        judged = judge(
            problem,
            cases,
            lambda: Sim(ProcessSandbox()).open(library, problem.entry_points),
            (Schedule.PROGRAM,),
            memory=Memory.DEVICE,
            seconds=20,
        )
        return [case.name for case in judged.cases if case.verdict is not Verdict.PASS]

    cases = problem.cases(SEED)
    small = [case for case in by_hand(cases) if case.orders is None]
    assert not wrong([replace(case, orders=1) for case in small])
    assert wrong([case for case in cases if case.group == MAGNITUDES])
