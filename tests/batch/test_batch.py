"""A batch with a stand-in for ``grader grade``: what is graded, kept, retried and interrupted."""

from __future__ import annotations

import csv
import io
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from interrupted import InterruptedPool

from grader.assignments.assignment import load, read
from grader.batch import batch, progress
from grader.batch.batch import (
    BatchProgress,
    BatchRequest,
    BatchResult,
    FolderError,
    Shard,
    closing_lines,
    run,
    workers_per_gpu,
)
from grader.batch.records import StorageError, fault
from grader.batch.tables import TableError
from grader.cli.arguments import FaultError
from grader.cli.main import commands
from grader.records import record as results
from grader.records.errors import MachineError
from grader.records.exit_codes import ExitCode
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

FAKE = Path(__file__).with_name("fake_worker.py")
WITH_DEADLINE = """id = "own"
title = "Own"
extends = "llm_systems_3"
[deadline]
due = 2026-12-01T23:59:00+01:00
per_day = 0.1
"""


def hand_in(folder: Path, **words: str) -> None:
    """A submission for each name, whose file says how its grading ends."""
    for name, word in words.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "softmax_kernel.cu").write_text(word)


@pytest.fixture
def request_(tmp_path: Path) -> BatchRequest:
    (tmp_path / "log").touch()
    return BatchRequest(
        folder=tmp_path / "in",
        out=tmp_path / "out",
        assignment=load("llm_systems_3"),
        options=GradingOptions("sim"),
        seed=5,
        jobs=2,
        command=(sys.executable, str(FAKE), str(tmp_path / "log")),
    )


@pytest.fixture
def graded(tmp_path: Path) -> Callable[[], list[str]]:
    """The names of what was graded since the last call."""

    def names() -> list[str]:
        lines = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
        (tmp_path / "log").write_text("")
        return sorted(name for name, operation, *_ in lines if operation == "grade")

    return names


def gradebook(out: Path) -> dict[str, dict[str, str]]:
    with (out / "gradebook.csv").open(newline="") as file:
        return {row["submission"]: row for row in csv.DictReader(file)}


def test_every_submission_is_graded_whatever_becomes_of_one(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right", b="wrong", c="killed", d="bug", e="fault", f="right")
    (request_.folder / "g.zip").write_text("no archive")
    (request_.folder / "h.zip").symlink_to("nowhere")
    os.mkfifo(request_.folder / "i.zip")
    lines: list[str] = []
    outcome = run(request_, lambda step: lines.append(step.line))
    assert (outcome.graded, set(outcome.faults)) == (4, set("cdeh"))
    assert outcome.skipped == ("i.zip is neither a file nor a folder",)
    assert outcome.exit_code == ExitCode.MACHINE_FAULT
    assert "killed, as the kernel does when memory runs out, by SIGKILL" in outcome.faults["c"]
    assert "exit code 1" in outcome.faults["d"]
    assert outcome.faults["e"] == "no nvcc here"
    last = closing_lines(outcome)[-1]
    assert last == "graded 4, machine faults 4: run the same command again to retry them"
    rows = gradebook(request_.out)
    scores = [rows[name]["score"] for name in "abcdefgh"]
    assert scores == ["60.00", "15.00", "", "", "", "60.00", "15.00", ""]
    assert "IndexError: of the grader" in (results.read(request_.out / "d" / "result.json").error or "")
    assert (request_.out / "index.html").read_text().startswith("<!doctype html>")
    numbered = [line for line in lines if line.startswith("[")]
    assert sorted(line.partition("]")[0] for line in numbered) == [f"[{n}/8" for n in range(1, 9)]
    assert any("a  60.0/60.0  1.0 s" in line for line in lines)


def test_a_fault_that_only_a_case_tells_of_is_told(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="fault")
    run(request_)
    record = results.read(request_.out / "a" / "result.json")
    problem = record.problems[0]
    case = problem.correctness.cases[0].model_copy(update={"message": "the simulator is gone\nbuild it"})
    correctness = problem.correctness.model_copy(update={"cases": [case]})
    problems = [problem.model_copy(update={"message": "", "correctness": correctness})]
    assert fault(record.model_copy(update={"problems": problems})) == "the simulator is gone"


def test_finished_work_is_kept_and_lost_points_are_a_result(
    request_: BatchRequest, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right", b="wrong", c="fault")
    (request_.folder / "d.zip").write_text("no archive")
    run(request_)
    assert graded() == ["a", "b", "c", "c", "d.zip"]
    outcome = run(request_)
    assert graded() == ["c", "c"]
    assert outcome.kept == 3
    hand_in(request_.folder, c="right")
    outcome = run(request_)
    assert graded() == ["c"]
    assert outcome == BatchResult(4, 3, {}, 0, interrupted=False, ignored=())
    assert outcome.exit_code == ExitCode.OK
    assert closing_lines(outcome)[-1] == "graded 4, machine faults 0"


def test_what_would_be_judged_otherwise_is_graded_again(
    request_: BatchRequest, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right", b="right", c="right", d="right", f="right", g="right")
    (request_.folder / "e.zip").write_text("no archive")
    run(request_)
    graded()
    hand_in(request_.folder, a="right indeed")
    (request_.folder / "e.zip").unlink()
    (request_.folder / "e.zip").symlink_to("nowhere")
    changed = {"b": '"version": "', "c": '"config_sha256": "', "f": '"sha256": "', "g": '"name": "a device'}
    for name, place in changed.items():
        path = request_.out / name / "result.json"
        path.write_text(path.read_text().replace(place, place + "0", 1))
    (request_.out / "d" / "result.json").write_text('{"schema": "1.0"}')
    run(request_)
    assert graded() == ["a", "b", "c", "d", "e.zip", "e.zip", "f", "g"]


@pytest.mark.parametrize(
    ("asked", "again"),
    [
        ({"options": GradingOptions("gpu")}, True),
        ({"seed": 6}, True),
        ({"seed": 5}, False),
        ({"options": GradingOptions("sim", memory="host")}, True),
        ({"options": GradingOptions("sim", memory="device")}, False),
        ({"seed": None}, False),
        ({"since": datetime(2040, 1, 1, tzinfo=UTC)}, True),
        ({"since": datetime(2020, 1, 1, tzinfo=UTC)}, False),
    ],
)
def test_a_record_that_does_not_answer_what_is_asked_is_made_again(
    asked: dict[str, object], again: bool, request_: BatchRequest, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right")
    run(request_)
    graded()
    run(replace(request_, **asked))  # type: ignore[arg-type]
    assert graded() == (["a"] if again else [])


def test_a_record_of_a_newer_grader_is_kept_and_the_batch_refused(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right")
    newer = request_.out / "a" / "result.json"
    newer.parent.mkdir(parents=True)
    newer.write_text('{"schema": "9.0"}')
    with pytest.raises(results.NewerError, match=r"newer grader \(schema 9\.0.*Update the grader"):
        run(request_)
    assert newer.read_text() == '{"schema": "9.0"}'


def test_the_command_tells_of_damaged_and_newer_records_as_report_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["batch", str(tmp_path), "--out", str(tmp_path / "out")]
    ended = BatchResult(1, 0, {}, 0, interrupted=False, ignored=(), damaged={"a": "a/result.json: none"})
    monkeypatch.setattr("grader.batch.batch.run", lambda *_: ended)
    assert commands.main(words, standalone_mode=False) == ExitCode.MACHINE_FAULT
    assert "left out: a/result.json: none\n" in capsys.readouterr().err

    def newer(*_: object) -> BatchResult:
        raise results.NewerError("written by a newer grader")

    monkeypatch.setattr("grader.batch.batch.run", newer)
    with pytest.raises(FaultError, match="newer grader") as refused:
        commands.main(words, standalone_mode=False)
    assert refused.value.code == ExitCode.USAGE


def test_the_pages_grow_with_the_batch(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right", b="right")
    seen: list[str] = []

    def look(step: BatchProgress) -> None:
        if step.done == 1:
            seen.append((request_.out / "index.html").read_text())
            assert len(list(request_.out.glob("*/report.html"))) == 1

    run(replace(request_, jobs=1), look)
    assert 'href="a/report.html"' in seen[0]
    assert "not graded yet" in seen[0]


def test_the_pages_of_a_shard_show_what_the_others_have_graded(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right", b="right", c="right")
    run(replace(request_, shard=Shard(1, 2)))
    seen: list[str] = []
    part = replace(request_, shard=Shard(2, 2))

    def look(step: BatchProgress) -> None:
        if step.line:
            seen.append((request_.out / "index.html").read_text())

    run(part, look)
    assert all(f'href="{name}/report.html"' in seen[0] for name in "abc")


@pytest.mark.parametrize("terminal", [True, False])
def test_there_is_a_line_for_each_submission_also_without_a_terminal(terminal: bool) -> None:
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    with progress.shown(stream) as show:
        show(BatchProgress("[1/2] a  60.0/60.0  1.0 s", 1, 2))
        show(BatchProgress("", 1, 2, "b, softmax_forward: timing [64 x 64], process 1"))
    assert stream.getvalue().count("[1/2] a  60.0/60.0  1.0 s\n") == 1
    assert not terminal or "b, softmax_forward: timing [64 x 64]" in stream.getvalue()
    assert terminal or stream.getvalue() == "[1/2] a  60.0/60.0  1.0 s\n"


def test_the_options_reach_each_grading(request_: BatchRequest, tmp_path: Path) -> None:
    hand_in(request_.folder, a="right")
    run(replace(request_, options=GradingOptions("sim", "process", "host"), seed=7))
    assert (tmp_path / "log").read_text().split()[3:] == ["sim", "process", "host", "7"]


def test_the_record_has_the_name_and_the_notes_of_the_batch(request_: BatchRequest) -> None:
    request_.folder.mkdir()
    (request_.folder / "doejane_LATE_1001_5_softmax_kernel-1.cu").write_text("right")
    run(request_)
    submission = results.read(request_.out / "doejane_1001" / "result.json").submission
    assert submission.name == "doejane_1001"
    assert submission.notes == ["handed in late"]
    assert gradebook(request_.out)["doejane_1001"]["note"] == "handed in late"
    assert run(request_).kept == 1


def test_a_loose_file_that_may_not_be_read_is_named(
    request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(request_.folder, a="right")
    loose = request_.folder / "doejane_1001_5_softmax_kernel.cu"
    loose.write_text("right")

    def closed(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(loose))

    monkeypatch.setattr("shutil.copyfile", closed)
    outcome = run(request_)
    assert outcome.graded == 1
    assert outcome.faults == {
        "doejane_1001": f"the machine failed: Permission denied ({loose}). Repair it and grade again."
    }


def test_the_gradebook_keeps_what_other_folders_brought(request_: BatchRequest, tmp_path: Path) -> None:
    hand_in(request_.folder, a="right")
    run(request_)
    hand_in(tmp_path / "later", b="wrong")
    outcome = run(replace(request_, folder=tmp_path / "later"))
    assert outcome.graded == 1
    assert list(gradebook(request_.out)) == ["a", "b"]
    (request_.out / "a" / "result.json").write_text("{")
    outcome = run(replace(request_, folder=tmp_path / "later"))
    assert "a/result.json: no result record" in outcome.damaged["a"]
    assert outcome.exit_code == ExitCode.MACHINE_FAULT
    assert list(gradebook(request_.out)) == ["a", "b"]
    assert gradebook(request_.out)["a"]["note"] == "not graded yet"


INTERRUPTED = """
import signal, sys
from datetime import UTC, datetime
from pathlib import Path
from grader.assignments.assignment import load
from grader.batch.batch import FolderError, BatchResult, BatchRequest, Shard, closing_lines, run
from grader.records.errors import MachineError
from grader.run.options import GradingOptions
signal.signal(signal.SIGTERM, signal.default_int_handler)  # as the commands do
folder, out, force, *command = sys.argv[1:]
request = BatchRequest(Path(folder), Path(out), load("llm_systems_3"), GradingOptions("sim"), jobs=2, seed=5,
                  command=command, since=datetime(2040, 1, 1, tzinfo=UTC) if force else None)
outcome = run(request)
print(closing_lines(outcome)[-1])
sys.exit(outcome.exit_code)
"""


def interrupted(request: BatchRequest, log: Path, number: signal.Signals, force: str = "") -> tuple[int, str]:
    """Exit code and last line of a batch that gets a signal once a grading hangs."""
    with subprocess.Popen(
        [
            *(sys.executable, "-P", "-c", INTERRUPTED),  # -P: the installed package, not this folder
            *(str(request.folder), str(request.out), force, *request.command),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as batch:
        rows = request.out / "gradebook.csv"
        try:
            while batch.poll() is None:
                if "hangs" in log.read_text() and rows.exists() and "b,60" in rows.read_text():
                    batch.send_signal(number)
                    break
                time.sleep(0.05)
            said, _ = batch.communicate(timeout=300)  # a busy machine takes its time
        finally:
            batch.kill()
    return batch.returncode, said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_what_is_finished(
    number: signal.Signals, request_: BatchRequest, tmp_path: Path, graded: Callable[[], list[str]]
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


def test_an_interrupt_while_gradings_begin_ends_them(
    request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(request_.folder, a_hangs="hangs", b="right")
    monkeypatch.setattr(batch, "ThreadPoolExecutor", InterruptedPool)
    outcome = run(request_)
    assert (outcome.interrupted, outcome.graded, outcome.missing) == (True, 0, 2)


def test_a_batch_that_grades_again_and_is_interrupted_keeps_the_old_results(
    request_: BatchRequest, tmp_path: Path
) -> None:
    hand_in(request_.folder, b="right")
    run(request_)
    hand_in(request_.folder, a_hangs="hangs", c_hangs="hangs")
    code, said = interrupted(request_, tmp_path / "log", signal.SIGINT, force="force")
    assert code == ExitCode.INTERRUPTED
    assert said.startswith("graded 1, machine faults 0, interrupted before 2")
    assert gradebook(request_.out)["b"]["score"] == "60.00"


def test_a_folder_without_submissions_says_what_one_is(request_: BatchRequest) -> None:
    request_.folder.mkdir()
    os.mkfifo(request_.folder / "doe.zip")
    with pytest.raises(
        FolderError, match=r"doe\.zip is neither a file nor a folder\.\n.* holds no submission"
    ):
        run(request_)
    (request_.folder / "softmax_kernel.cu").touch()
    with pytest.raises(FolderError, match=r"is one submission.* grader grade"):
        run(request_)


def test_a_folder_that_is_none_is_a_usage_error(request_: BatchRequest, tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="does not exist"):
        run(request_)
    request_.folder.write_text("")
    with pytest.raises(FolderError, match="unpack it first"):
        run(request_)
    hand_in(tmp_path / "subs", a="right")
    for out in ("subs", "subs/out", "subs/../subs/a"):
        with pytest.raises(FolderError, match="Name a folder outside it"):
            run(replace(request_, folder=tmp_path / "subs", out=tmp_path / out))


def test_a_full_disk_ends_the_batch_with_what_is_finished(
    request_: BatchRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in(request_.folder, a="right", b="right")
    real = os.fsync
    written: list[int] = []

    def full_after_the_first_submission(number: int) -> None:
        written.append(number)
        if len(written) > 4:
            raise OSError(28, "No space left on device")
        real(number)

    monkeypatch.setattr("os.fsync", full_after_the_first_submission)
    with pytest.raises(StorageError, match=r"No space left on device.*run the same command again"):
        run(replace(request_, jobs=1))
    assert list(gradebook(request_.out)) == ["a", "b"]
    assert results.read(request_.out / "a" / "result.json").exit_code == 0


def test_a_place_that_cannot_be_written_is_named(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right")
    request_.out.mkdir()
    (request_.out / "a").write_text("in the way")
    with pytest.raises(StorageError, match="out/a cannot be written: File exists"):
        run(request_)


def test_the_command_names_its_files_and_ends_with_its_code(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "grader", "batch", str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.USAGE
    assert "nowhere does not exist. Name a folder that holds the submissions." in done.stderr


def test_a_fault_of_the_machine_is_tried_again_once(
    request_: BatchRequest, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="once fault", b="once killed", c="right")
    outcome = run(request_)
    assert (outcome.graded, outcome.faults) == (3, {})
    assert graded() == ["a", "a", "b", "b", "c"]


def test_what_failed_beside_others_is_tried_again_alone(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="crowded", b="crowded")
    outcome = run(request_)
    assert (outcome.graded, outcome.faults) == (2, {})


def test_what_a_killed_batch_had_begun_to_write_is_removed(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right")
    run(request_)
    files = [request_.out / ".index.html.0a_bcdef", request_.out / "a" / ".result.json.0a_bcdef"]
    others = [request_.out / "a" / ".result.json.now__now", request_.out / ".result.jsonx"]
    for file in (*files, *others):
        file.write_text("{")
    for file in (*files, others[1]):
        os.utime(file, (time.time() - 4000,) * 2)
    run(request_)
    assert not [file for file in files if file.exists()]
    assert [file for file in others if file.exists()] == others


def test_only_what_is_named_is_graded(request_: BatchRequest, graded: Callable[[], list[str]]) -> None:
    hand_in(request_.folder, doejane="right", roejohn="right")
    assert run(replace(request_, only=("roejohn",))).graded == 1
    assert graded() == ["roejohn"]
    assert gradebook(request_.out)["doejane"]["note"] == "not graded yet"
    with pytest.raises(FolderError, match="Did you mean 'doejane'"):
        run(replace(request_, only=("doejana",)))


def test_shards_grade_each_submission_once_and_the_last_shows_all(
    request_: BatchRequest, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, **dict.fromkeys("abcde", "right"))
    assert [run(replace(request_, shard=Shard(part, 2))).graded for part in (1, 2)] == [3, 2]
    assert graded() == list("abcde")
    assert {row["score"] for row in gradebook(request_.out).values()} == {"60.00"}


def test_a_class_meets_one_seed_also_in_a_later_run(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right", b="right")
    run(replace(request_, seed=None))
    hand_in(request_.folder, c="right")
    run(replace(request_, seed=None))
    seeds = {results.read(request_.out / name / "result.json").seed for name in "abc"}
    assert len(seeds) == 1
    assert (request_.out / ".seed").stat().st_mode & 0o077 == 0


def test_a_score_that_changes_is_shown_with_the_old_one(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="wrong")
    run(request_)
    hand_in(request_.folder, a="right")
    lines: list[str] = []
    run(request_, lambda step: lines.append(step.line))
    assert list(filter(None, lines)) == ["[1/1] a  60.0/60.0 (was 15.0/60.0)  1.0 s"]


def test_a_machine_that_cannot_grade_ends_the_batch_at_once(request_: BatchRequest, tmp_path: Path) -> None:
    hand_in(request_.folder, a="right")
    (tmp_path / "broken-").write_text("nvcc is missing")
    with pytest.raises(MachineError, match="nvcc is missing"):
        run(request_)
    with pytest.raises(MachineError, match="exit code 3"):
        run(replace(request_, command=(sys.executable, "-c", "raise SystemExit(3)")))


@pytest.fixture
def gpus(request_: BatchRequest, monkeypatch: pytest.MonkeyPatch) -> BatchRequest:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    return replace(request_, options=GradingOptions("gpu"), gpus="2", jobs=1)


def test_on_gpus_builds_come_ahead_and_a_crash_is_followed_by_a_check(
    gpus: BatchRequest, tmp_path: Path
) -> None:
    hand_in(gpus.folder, a="right", b="crashes", c="right")
    lines: list[str] = []
    outcome = run(gpus, lambda step: lines.append(step.line))
    assert outcome.graded == 3
    assert [line for line in lines if "works, checked after b" in line]
    operations = [line.split()[:2] for line in (tmp_path / "log").read_text().splitlines()]
    for name in "abc":
        assert operations.index([name, "build"]) < operations.index([name, "grade"])


def test_what_is_done_is_told_while_it_is_done(request_: BatchRequest) -> None:
    hand_in(request_.folder, a="right")
    steps: list[BatchProgress] = []
    run(request_, steps.append)
    assert BatchProgress("", 0, 1, "a, timing it") in steps


def test_a_gpu_that_broke_is_used_no_more_and_without_any_the_batch_stops(gpus: BatchRequest) -> None:
    hand_in(gpus.folder, a="breaks", **{f"b{number}": "right" for number in range(6)})
    lines: list[str] = []
    outcome = run(gpus, lambda step: lines.append(step.line))
    assert outcome.graded == 6
    assert "stopped working after this submission: fell off the bus" in outcome.faults["a"]
    hand_in(gpus.folder, b="breaks", c="breaks", **{f"d{number}": "right" for number in range(6)})
    for path in gpus.folder.parent.glob("broken-*"):
        path.unlink()
    stopped = run(replace(gpus, gpus="7,"))
    assert stopped.stopped.startswith("No GPU works any more")
    assert stopped.exit_code == ExitCode.MACHINE_FAULT
    assert closing_lines(stopped)[-1].endswith("run the same command again to go on")


def test_more_gpus_than_shown_are_refused(gpus: BatchRequest) -> None:
    hand_in(gpus.folder, a="right")
    with pytest.raises(MachineError, match="CUDA_VISIBLE_DEVICES names 2"):
        run(replace(gpus, gpus="3"))
    with pytest.raises(MachineError, match=r"there is no GPU 5. There are: 4, 7."):
        run(replace(gpus, gpus="4,5"))


def test_what_is_late_loses_points_in_the_tables_and_not_in_the_record(
    request_: BatchRequest, tmp_path: Path, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right", b="right", c="wrong")
    rules = tmp_path / "assignment.toml"
    rules.write_text(WITH_DEADLINE)
    table = tmp_path / "times.csv"
    table.write_text(
        "submission,submitted,student\na,2026-12-02T10:00:00Z,doe\nb,2026-12-01T10:00:00Z,roe\n"
        "c,2026-12-01T11:00:00Z,roe\n"
    )
    late = replace(request_, assignment=read(tmp_path), submitted=table)
    run(late)
    rows = gradebook(late.out)
    assert {name: row["score"] for name, row in rows.items()} == {"a": "54.00", "c": "15.00"}
    assert rows["a"]["note"] == "1 day late: 10% of 60.00 points are taken off"
    assert results.read(late.out / "a" / "result.json").score.earned == 60
    assert "the last of several is c" in (late.out / "b" / "report.html").read_text()
    graded()
    rules.write_text(WITH_DEADLINE.replace("per_day = 0.1", "per_day = 0.2"))
    run(replace(late, assignment=read(tmp_path), submitted=None))
    assert gradebook(late.out)["a"]["score"] == "48.00"
    assert graded() == []


def test_a_wrong_table_is_refused_before_anything_is_graded(
    request_: BatchRequest, tmp_path: Path, graded: Callable[[], list[str]]
) -> None:
    hand_in(request_.folder, a="right")
    (tmp_path / "times.csv").write_text("submission,submitted\na,noon\n")
    with pytest.raises(TableError, match=r"times.csv:2: 'noon' is no time"):
        run(replace(request_, submitted=tmp_path / "times.csv"))
    assert graded() == []


@pytest.mark.parametrize(
    ("processors", "gpus", "workers"), [(2, 1, 2), (16, 1, 8), (128, 1, 8), (16, 2, 4), (64, 8, 4)]
)
def test_a_gpu_has_at_least_two_workers_and_no_more_than_find_work(
    processors: int, gpus: int, workers: int
) -> None:
    assert workers_per_gpu(processors, gpus) == workers


def test_requests_are_worked_off_once_and_reports_say_what_came_of_them(
    request_: BatchRequest, graded: Callable[[], list[str]], tmp_path: Path
) -> None:
    hand_in(request_.folder, a="right", b="wrong", c="right")
    run(request_)
    graded()
    table = tmp_path / "requests.csv"
    table.write_text("submission,reason,by,date\nb,the include is allowed,Ada,2026-12-03\nc,look again,,\n")
    hand_in(request_.folder, b="right")
    asked = replace(request_, regrade=table)
    run(asked)
    assert graded() == ["b", "c"]
    rows = gradebook(request_.out)
    told = "graded again as asked (Ada, 2026-12-03): the include is allowed: 60.00 points, 15.00 before"
    assert told in rows["b"]["note"]
    assert "graded again as asked: look again: 60.00 points, 60.00 before" in rows["c"]["note"]
    assert "graded again" not in rows["a"]["note"]
    assert told in (request_.out / "b" / "report.html").read_text()
    run(asked)
    assert graded() == []
    table.write_text(table.read_text() + "b,once more,,\n")
    run(asked)
    assert graded() == ["b"]
    assert gradebook(request_.out)["b"]["note"].count("graded again as asked") == 2


def test_a_request_that_cannot_be_worked_off_is_told_or_stays(
    request_: BatchRequest, graded: Callable[[], list[str]], tmp_path: Path
) -> None:
    hand_in(request_.folder, anna="right", b="right")
    run(request_)
    table = tmp_path / "requests.csv"
    table.write_text("submission,reason\nana,why\n")
    with pytest.raises(
        TableError, match=r"requests.csv:2: there is no submission 'ana'. Did you mean 'anna'"
    ):
        run(replace(request_, regrade=table))
    table.write_text("submission,reason\nanna,why\n")
    hand_in(request_.folder, anna="fault")
    run(replace(request_, regrade=table))
    hand_in(request_.folder, anna="right")
    graded()
    run(replace(request_, regrade=table))
    assert graded() == ["anna"]
