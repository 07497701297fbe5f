"""The class whose grading is measured, and what is concluded from its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from first_assignment import ASSIGNMENT
from throughput import FILES, REFERENCE, make, summary

from grader.records.record import SubmissionInfo
from grader.run.bench import Bench
from grader.run.grading import GradingRequest, _Run
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from pathlib import Path


def test_right_and_wrong_submissions_of_each_problem_come_in_turn(tmp_path: Path) -> None:
    make(tmp_path, 9, transformer=False)
    made = sorted(tmp_path.iterdir())
    kinds = [folder.name.split("-")[1:3] for folder in made]
    assert [kind for kind, _ in kinds] == ["right", "wrong"] * 4 + ["right"]
    assert len({problem for kind, problem in kinds if kind == "wrong"}) == 4
    for folder in made:
        assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
        edited = [name for name in FILES if (folder / name).read_text() != (REFERENCE / name).read_text()]
        assert len(edited) == 1


def test_what_a_batch_left_is_counted(tmp_path: Path) -> None:
    request = GradingRequest(tmp_path, ASSIGNMENT, ("softmax_forward",), GradingOptions("sim"), seed=1)
    run = _Run(request, Bench(), submission=SubmissionInfo(name="a", sha256="", files=[]))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(run.record(error="lost").model_dump_json(by_alias=True))
    found = summary(tmp_path, seconds=60.0, processors=90.0, busy=[40.0, 60.0])
    assert (found["graded"], found["an hour"], found["processors busy"], found["GPU busy"]) == (
        2,
        120,
        1.5,
        0.5,
    )
    assert (found["timed problems"], found["faults"]) == (0, ["a", "b"])
