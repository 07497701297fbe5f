"""The assignment ``stream_compaction``: ``nox -s assignments`` runs its reference, mutants and variants."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.assignments.assignment import load
from grader.assignments.mutants import table
from grader.problems.problem import MEMORY_GROUP, Case
from grader.problems.program import FRESH, Numbers, ProgramProblem

PROJECT = load(str(Path(__file__).parents[2] / "assignments" / "stream_compaction"))


def problem(name: str) -> ProgramProblem:
    found = PROJECT.problems[name]
    assert isinstance(found, ProgramProblem)
    return found


def test_every_mutant_edits_the_reference_and_names_a_group() -> None:
    mutants = table(PROJECT)
    assert len({mutant.id for mutant in mutants}) == len(mutants) == 13
    for mutant in mutants:
        assert mutant.text(PROJECT) != mutant.original(PROJECT)
        assert mutant.group in {*problem(mutant.problem).groups, MEMORY_GROUP}


@pytest.mark.parametrize("name", ["scan", "compact", "radix_sort"])
def test_what_is_expected_is_what_python_says(name: str) -> None:
    run = problem(name).run(Case("", "", {"n": 1000}, FRESH, 7))
    array = np.frombuffer(run.files["in.raw"], np.int32).tolist()
    expected = run.expected["out.raw"]
    assert isinstance(expected, Numbers)
    right = {
        "scan": [sum(array[:index]) for index in range(1000)],
        "compact": [number for number in array if number],
        "radix_sort": sorted(array),
    }
    assert expected.values.tolist() == right[name]
