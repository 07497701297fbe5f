"""A batch with a stand-in for ``grader grade``: what is graded, kept, retried and interrupted."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader import results
from grader.assignments.assignment import load
from grader.batch.batch import FolderError, Outcome, Request, StorageError, closing_lines, run
from grader.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable

FAKE = Path(__file__).with_name("fake_grade.py")


def hand_in(folder: Path, **words: str) -> None:
    """A submission for each name, whose file says how its grading ends."""
    for name, word in words.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "softmax_kernel.cu").write_text(word)


@pytest.fixture
def request_(tmp_path: Path) -> Request:
    (tmp_path / "log").touch()
    return Request(
        folder=tmp_path / "in",
        out=tmp_path / "out",
        assignment=load("llm_systems_3"),
        device="sim",
        jobs=2,
        command=(sys.executable, str(FAKE), str(tmp_path / "log")),
    )


@pytest.fixture
def graded(tmp_path: Path) -> Callable[[], list[str]]:
    """The names of what was graded since the last call."""

    def names() -> list[str]:
        lines = (tmp_path / "log").read_text().splitlines()
        (tmp_path / "log").write_text("")
        return sorted(line.split()[0] for line in lines)

    return names


def gradebook(out: Path) -> dict[str, dict[str, str]]:
    with (out / "gradebook.csv").open(newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def test_every_submission_is_graded_whatever_becomes_of_one(request_: Request) -> None:
    hand_in(request_.folder, a="right", b="wrong", c="killed", d="bug", e="garbage", f="right")
    (request_.folder / "g.zip").write_text("no archive")
    (request_.folder / "h.zip").symlink_to("nowhere")
    lines: list[str] = []
    outcome = run(request_, lines.append)
    assert (outcome.graded, set(outcome.faults)) == (4, set("cdeh"))
    assert outcome.exit_code == ExitCode.MACHINE_FAULT
    assert "killed, as the kernel does when memory runs out, by SIGKILL" in outcome.faults["c"]
    assert "exit code 4" in outcome.faults["d"]
    assert "no result record" in outcome.faults["e"]
    last = closing_lines(outcome)[-1]
    assert last == "graded 4, machine faults 4: run the same command again to retry them"
    rows = gradebook(request_.out)
    scores = [rows[name]["score"] for name in "abcdefgh"]
    assert scores == ["60.00", "15.00", "", "", "", "60.00", "15.00", ""]
    assert "IndexError: of the grader" in (results.read(request_.out / "d" / "result.json").error or "")
    assert (request_.out / "index.html").read_text().startswith("<!doctype html>")
    assert sorted(line.partition("]")[0] for line in lines) == [f"[{n}/8" for n in range(1, 9)]
    assert any("a  60.0/60.0  1.0 s" in line for line in lines)


def test_finished_work_is_kept_and_lost_points_are_a_result(
    request_: Request, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right", b="wrong", c="fault")
    (request_.folder / "d.zip").write_text("no archive")
    run(request_)
    assert graded() == ["a", "b", "c", "d.zip"]
    outcome = run(request_)
    assert graded() == ["c"]
    assert outcome.kept == 3
    hand_in(request_.folder, c="right")
    outcome = run(request_)
    assert graded() == ["c"]
    assert outcome == Outcome(4, 3, {}, 0, interrupted=False, ignored=())
    assert outcome.exit_code == ExitCode.OK
    assert closing_lines(outcome)[-1] == "graded 4, machine faults 0"


def test_what_would_be_judged_otherwise_is_graded_again(
    request_: Request, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right", b="right", c="right", d="right")
    (request_.folder / "e.zip").write_text("no archive")
    run(request_)
    graded()
    hand_in(request_.folder, a="right indeed")
    (request_.folder / "e.zip").unlink()
    (request_.folder / "e.zip").symlink_to("nowhere")
    for name, old, new in (("b", '"version": "', '"version": "0'), ("c", '"config_sha256": "', "&0")):
        path = request_.out / name / "result.json"
        path.write_text(path.read_text().replace(old, new.replace("&", old)))
    (request_.out / "d" / "result.json").write_text('{"schema": "9.0"}')
    run(request_)
    assert graded() == ["a", "b", "c", "d", "e.zip"]


@pytest.mark.parametrize(
    ("asked", "again"),
    [
        ({"device": "gpu"}, True),
        ({"seed": 6}, True),
        ({"seed": 5}, False),
        ({"memory": "host"}, True),
        ({"memory": "device"}, False),
        ({"force": True}, True),
    ],
)
def test_a_record_that_does_not_answer_what_is_asked_is_made_again(
    asked: dict[str, object], again: bool, request_: Request, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right")
    run(request_)
    graded()
    run(replace(request_, **asked))  # type: ignore[arg-type]
    assert graded() == (["a"] if again else [])


def test_the_options_reach_each_grading(request_: Request, tmp_path: Path) -> None:
    hand_in(request_.folder, a="right")
    run(replace(request_, sandbox="process", memory="host", seed=7))
    assert (tmp_path / "log").read_text() == (
        "a --assignment llm_systems_3 --device sim --sandbox process --memory host --seed 7\n"
    )


def test_the_record_has_the_name_and_the_notes_of_the_batch(request_: Request) -> None:
    request_.folder.mkdir()
    (request_.folder / "doejane_LATE_1001_5_softmax_kernel-1.cu").write_text("right")
    run(request_)
    submission = results.read(request_.out / "doejane_1001" / "result.json").submission
    assert submission.name == "doejane_1001"
    assert submission.notes == ["handed in late"]
    assert gradebook(request_.out)["doejane_1001"]["note"] == "handed in late"
    assert run(request_).kept == 1


def test_the_gradebook_keeps_what_other_folders_brought(request_: Request, tmp_path: Path) -> None:
    hand_in(request_.folder, a="right")
    run(request_)
    hand_in(tmp_path / "later", b="wrong")
    outcome = run(replace(request_, folder=tmp_path / "later"))
    assert outcome.graded == 1
    assert list(gradebook(request_.out)) == ["a", "b"]


INTERRUPTED = """
import signal, sys
from pathlib import Path
from grader.assignments.assignment import load
from grader.batch.batch import Request, closing_lines, run
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the commands do
folder, out, force, *command = sys.argv[1:]
request = Request(Path(folder), Path(out), load("llm_systems_3"), "sim", jobs=2, command=command,
                  force=force == "force")
outcome = run(request)
print(closing_lines(outcome)[-1])
sys.exit(outcome.exit_code)
"""


def interrupted(request: Request, log: Path, number: signal.Signals, force: str = "") -> tuple[int, str]:
    """Exit code and last line of a batch that gets a signal once a grading hangs."""
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(request.folder), str(request.out), force, *request.command],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as batch:
        rows = request.out / "gradebook.csv"
        while batch.poll() is None:
            if "hangs" in log.read_text() and rows.exists() and "b,60" in rows.read_text():
                batch.send_signal(number)
                break
            time.sleep(0.05)
        said, _ = batch.communicate(timeout=60)
    return batch.returncode, said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_finished(
    number: signal.Signals, request_: Request, tmp_path: Path, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a_hangs="hangs", b="right", c_hangs="hangs", d="right")
    code, said = interrupted(request_, tmp_path / "log", number)
    assert code == ExitCode.INTERRUPTED
    assert said == "graded 1, machine faults 0, interrupted before 3: run the same command again to go on\n"
    assert set(graded()) <= {"a_hangs", "b", "c_hangs"}
    assert results.read(request_.out / "b" / "result.json").exit_code == 0
    assert not (request_.out / "a_hangs").exists()
    assert gradebook(request_.out)["d"]["note"] == "not graded yet"
    assert (request_.out / "index.html").exists()
    hand_in(request_.folder, a_hangs="right", c_hangs="right")
    assert run(request_).graded == 4
    assert graded() == ["a_hangs", "c_hangs", "d"]


def test_a_batch_that_grades_again_and_is_interrupted_keeps_the_old_results(
    request_: Request, tmp_path: Path
) -> None:
    hand_in(request_.folder, b="right")
    run(request_)
    hand_in(request_.folder, a_hangs="hangs", c_hangs="hangs")
    code, said = interrupted(request_, tmp_path / "log", signal.SIGINT, force="force")
    assert code == ExitCode.INTERRUPTED
    assert said.startswith("graded 1, machine faults 0, interrupted before 2")
    assert gradebook(request_.out)["b"]["score"] == "60.00"


def test_a_folder_without_submissions_says_what_one_is(request_: Request) -> None:
    request_.folder.mkdir()
    with pytest.raises(FolderError, match="holds no submission"):
        run(request_)
    (request_.folder / "softmax_kernel.cu").touch()
    with pytest.raises(FolderError, match=r"is one submission.* grader grade"):
        run(request_)


def test_a_folder_that_is_none_is_a_usage_error(request_: Request, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="is not there"):
        run(request_)
    request_.folder.write_text("")
    with pytest.raises(FolderError, match="unpack it first"):
        run(request_)
    hand_in(tmp_path / "subs", a="right")
    for out in ("subs", "subs/out", "subs/../subs/a"):
        with pytest.raises(FolderError, match="Name a folder outside it"):
            run(replace(request_, folder=tmp_path / "subs", out=tmp_path / out))


def test_a_full_disk_ends_the_batch_with_what_is_finished(
    request_: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(request_.folder, a="right", b="right")
    real = os.fsync
    written: list[int] = []

    def full_after_the_first_submission(number: int) -> None:
        written.append(number)
        if len(written) > 2:
            raise OSError(28, "No space left on device")
        real(number)

    monkeypatch.setattr("os.fsync", full_after_the_first_submission)
    with pytest.raises(StorageError, match=r"No space left on device.*run the same command again"):
        run(replace(request_, jobs=1))
    assert list(gradebook(request_.out)) == ["a", "b"]
    assert results.read(request_.out / "a" / "result.json").exit_code == 0


def test_a_place_that_cannot_be_written_is_named(request_: Request) -> None:
    hand_in(request_.folder, a="right")
    request_.out.mkdir()
    (request_.out / "a").write_text("in the way")
    with pytest.raises(StorageError, match="out/a: cannot be written: File exists"):
        run(request_)


def test_the_command_names_its_files_and_ends_with_its_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "batch", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.USAGE
    assert "nowhere is not there. Name a folder that holds the submissions." in done.stderr
