"""Problems of which more than one answer is right are sound: right kernels pass, and wrong ones fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from sound_assignment import assert_sound

from grader.simulator.driver import RUNTIME

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("several_answers")


def test_the_documentation_shows_a_problem_that_is_tried() -> None:
    text = (ROOT / "docs" / "checkers.md").read_text()
    assert (FOLDER / "problems" / "top_k.py").read_text() in text


@pytest.mark.long
def test_right_kernels_pass_and_wrong_ones_fail() -> None:
    assert_sound(FOLDER, "checker of")
