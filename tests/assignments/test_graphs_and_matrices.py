"""Problems on graphs, matrices and masks are sound: of other types, or of more than one right answer."""

from __future__ import annotations

from pathlib import Path

import pytest
from sound_assignment import assert_sound

from grader.simulator.driver import RUNTIME

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

FOLDER = Path(__file__).with_name("graphs_and_matrices")


@pytest.mark.long
def test_right_kernels_pass_and_wrong_ones_fail() -> None:
    assert_sound(FOLDER)
