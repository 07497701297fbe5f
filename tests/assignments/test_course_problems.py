"""Problems with structs, small integers, linked contents and tensor cores are sound."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
from sound_assignment import assert_sound

from grader.assignments.assignment import read
from grader.records.verdict import Verdict
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions
from grader.simulator.driver import RUNTIME

pytestmark = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")

FOLDER = Path(__file__).with_name("course_problems")
MOST_LINES = 30


def test_each_problem_is_short() -> None:
    for path in (*FOLDER.glob("problems/*.py"), *FOLDER.with_name("several_answers").glob("problems/*.py")):
        assert len(path.read_text().splitlines()) <= MOST_LINES, path.name


@pytest.mark.usefixtures("ptx_only")
def test_a_struct_with_another_layout_does_not_compile(tmp_path: Path) -> None:
    submission = copytree(FOLDER / "reference", tmp_path / "submission")
    file = submission / "particles.cu"
    file.write_text(
        file.read_text().replace("unsigned char weight;\n  float velocity[3];", "int velocity[3];")
    )
    (problem,) = grade(
        GradingRequest(submission, read(FOLDER), ("particles",), GradingOptions("sim", "process"), 1)
    ).problems
    assert problem.verdict is Verdict.FAIL
    assert problem.build is not None
    assert (
        "the assignment has struct Particle { float position[3]; unsigned char weight;" in problem.build.log
    )
    assert "the assignment(" in problem.build.log


@pytest.mark.long
def test_right_kernels_pass_and_wrong_ones_fail() -> None:
    assert_sound(FOLDER)
