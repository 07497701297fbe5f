"""Problems of which more than one answer is right are sound: right kernels pass, and wrong ones fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.assignments.assignment import read
from grader.simulator.driver import RUNTIME
from grader.soundness.check import check

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("several_answers")


def test_the_documentation_shows_a_problem_that_is_tried() -> None:
    text = (ROOT / "docs" / "checkers.md").read_text()
    assert (FOLDER / "problems" / "top_k.py").read_text() in text


@pytest.mark.long
def test_right_kernels_pass_and_wrong_ones_fail() -> None:
    assignment = read(FOLDER)
    rows = list(check(assignment, list(assignment.problems), seeds=1, device="sim"))
    assert [row for row in rows if row.sound is False] == []
    sound = {row.title for row in rows if row.sound}
    for name in assignment.problems:
        kinds = ("template:", "reference:", "variants of", "mutants of", "checker of")
        assert {f"{kind} {name}" for kind in kinds} <= sound
