"""The assignment ``sgemm``: ``nox -s assignments`` runs its reference, mutants and variants."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from grader.assignments.assignment import load, read
from grader.assignments.mutants import table
from grader.problems.problem import MEMORY_GROUP, Case
from grader.problems.program import FRESH, Numbers, ProgramProblem
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.options import GradingOptions

FOLDER = Path(__file__).parents[2] / "assignments" / "sgemm"
SGEMM = load(str(FOLDER))


def problem() -> ProgramProblem:
    sgemm = SGEMM.problems["sgemm"]
    assert isinstance(sgemm, ProgramProblem)
    return sgemm


def test_every_mutant_edits_the_reference_and_names_a_group() -> None:
    mutants = table(SGEMM)
    assert len({mutant.id for mutant in mutants}) == len(mutants) == 8
    for mutant in mutants:
        assert mutant.text(SGEMM) != mutant.original(SGEMM)
        assert mutant.group in {*problem().groups, MEMORY_GROUP}


@pytest.mark.parametrize("calls", [1, 2])
def test_the_bound_holds_for_a_sum_in_single_precision_and_is_no_larger_than_it_has_to_be(calls: int) -> None:
    run = problem().run(Case("", "", {"m": 20, "n": 30, "k": 40, "calls": calls}, FRESH, 7))
    a = np.frombuffer(run.files["a.raw"], np.float32).reshape(20, 40)
    b = np.frombuffer(run.files["b.raw"], np.float32).reshape(40, 30)
    expected = run.expected["c.raw"]
    assert isinstance(expected, Numbers)
    assert expected.allowed is not None
    right = np.zeros((20, 30), np.float32)
    for column, row in zip(a.T, b, strict=True):
        right += np.outer(column, row)
    error = np.abs(expected.values - (right if calls == 1 else -right).ravel())
    assert np.all(error <= expected.allowed)
    assert np.all(expected.allowed < 1e-3)


@pytest.mark.usefixtures("ptx_only")
def test_the_rival_is_right_where_cublas_is_allowed(tmp_path: Path) -> None:
    shutil.copytree(FOLDER, tmp_path / "sgemm", ignore=shutil.ignore_patterns("__pycache__"))
    module = tmp_path / "sgemm" / "problems" / "sgemm.py"
    module.write_text(module.read_text().replace("libraries=()", 'libraries=("cublas",)'))
    request = grading.GradingRequest(
        FOLDER / "rival", read(tmp_path / "sgemm"), ("sgemm",), GradingOptions("sim"), 1
    )
    assert grading.grade(request).problems[0].verdict is Verdict.PASS
    refused = grading.GradingRequest(FOLDER / "rival", SGEMM, ("sgemm",), GradingOptions("sim"), 1)
    assert "does not allow the library cublas" in grading.grade(refused).problems[0].message
