"""What is right for a model's cases is worked out by other processes."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from first_assignment import ASSIGNMENT, PROBLEMS

from grader.devices.device import Schedule
from grader.run import working_out

if TYPE_CHECKING:
    from collections.abc import Mapping

    from grader.problems.problem import Case, Expectation, Inputs

SEED = 3
PROBLEM = PROBLEMS["transformer"]


def test_what_another_process_has_worked_out_is_not_worked_out_again(tmp_path: Path) -> None:
    def oracle(case: Case, _inputs: Inputs) -> Mapping[str, Expectation]:
        pytest.fail(f"{case.name} is worked out again")

    cases = PROBLEM.cases(SEED)
    number = max(range(len(cases)), key=lambda index: math.prod(cases[index].sizes.values()))
    words = [str(ASSIGNMENT.folder), PROBLEM.id, str(SEED), Schedule.PROGRAM.name, str(tmp_path)]
    command = [sys.executable, "-m", working_out.__name__, *words, str(number), str(len(cases))]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        assert process.wait() == 0
    sharing = working_out._sharing(replace(PROBLEM, oracle=oracle), str(tmp_path))
    inputs = sharing.inputs(cases[number])
    right = PROBLEM.oracle(cases[number], inputs)
    for name, expectation in sharing.oracle(cases[number], inputs).items():
        np.testing.assert_array_equal(
            expectation.candidates[0].expected, right[name].candidates[0].expected, strict=True
        )


def test_the_processes_and_their_files_end_with_the_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []
    folders: list[str] = []

    def start(command: list[str], **options: int) -> subprocess.Popen[bytes]:
        folders.append(command[8])
        started.append(real([sys.executable, "-c", "input()"], **options))
        return started[-1]

    real = subprocess.Popen
    monkeypatch.setattr(working_out.subprocess, "Popen", start)
    with working_out.worked_out_beside(ASSIGNMENT, PROBLEM, SEED, (Schedule.PROGRAM,)):
        assert [process.poll() for process in started] == [None] * working_out.PROCESSES
        assert all(Path(folder).is_dir() for folder in folders)
    assert all(process.returncode is not None for process in started)
    assert not any(Path(folder).exists() for folder in folders)
