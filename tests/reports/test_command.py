"""``grader report`` and the report options of ``grader grade`` as a user types them; nothing is run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import forked
import pytest
import report_samples as samples
from privileges import without_privileges

from grader.records import record as results

if TYPE_CHECKING:
    from pathlib import Path

GRADER = [sys.executable, "-P", "-m", "grader"]


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return forked.run(*arguments, environment={"GITHUB_ACTIONS": "", "CUDA_HOME": "/nowhere", **environment})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What ``grader batch`` leaves of two submissions."""
    out = tmp_path / "out"
    for name in ("doejane_1001", "käthe müller"):
        (out / name).mkdir(parents=True)
        results.write(samples.record(name), out / name / "result.json")
    return out


def test_without_options_the_pages_and_the_gradebook_are_made_anew(folder: Path) -> None:
    done = run("report", folder)
    assert done.returncode == 0, done.stderr
    assert "wrote 2 pages" in done.stdout
    assert "käthe müller,12.00,24.00" in (folder / "gradebook.csv").read_text()
    index = (folder / "index.html").read_text()
    assert 'href="k%C3%A4the%20m%C3%BCller/report.html"' in index
    assert "424242" not in (folder / "doejane_1001" / "report.html").read_text()


def test_pages_in_another_folder_are_for_students_unless_staff_ask(folder: Path, tmp_path: Path) -> None:
    assert run("report", folder, "--html", tmp_path / "web").returncode == 0
    assert "doejane" not in (tmp_path / "web" / "index.html").read_text()
    assert not (tmp_path / "web" / "gradebook.csv").exists()
    assert run("report", folder, "--html", tmp_path / "staff", "--staff").returncode == 0
    assert "doejane_1001" in (tmp_path / "staff" / "index.html").read_text()
    assert "--seed 424242" in (tmp_path / "staff" / "doejane_1001" / "report.html").read_text()


def test_a_report_that_cannot_be_written_is_the_fault_of_the_machine(folder: Path, tmp_path: Path) -> None:
    done = run("report", folder, "--junit", "/dev/full")
    assert done.returncode == 3
    assert "/dev/full: cannot be written: No space left on device." in done.stderr
    done = run("report", folder, "--moodle", tmp_path / "none" / "grades.csv")
    assert done.returncode == 2
    assert f"{tmp_path / 'none'} is no folder. Name a file in one that is." in done.stderr


RULES = """id = "own"
title = "Own"
extends = "llm_systems_3"
[deadline]
due = 2026-12-01T23:59:00+01:00
per_day = 0.5
"""
TIMES = """submission,submitted,student
doejane_1001,2026-12-01T10:00:00Z,poe
käthe müller,2026-12-02T10:00:00Z,poe
"""


def test_lateness_and_the_last_of_several_reach_every_table(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text(TIMES)
    (tmp_path / "assignment.toml").write_text(RULES)
    (tmp_path / "export.csv").write_text("Student,ID,Section,HW3 (1)\nPoe,7,A,\n    Points Possible,,,24\n")
    (tmp_path / "roster.csv").write_text("username,email\npoe,poe@x.org\n")
    named = ("--submitted", tmp_path / "times.csv")
    assert run("report", folder, *named).returncode == 2, "it has to be said what lateness costs"
    assert run("report", folder / "doejane_1001", *named, "--assignment", tmp_path).returncode == 2
    done = run("report", folder, *named, "--assignment", tmp_path)
    assert done.returncode == 0, done.stderr
    tables = ("--canvas", tmp_path / "export.csv", "--moodle", tmp_path / "moodle.csv")
    assert run("report", folder, *tables, "--roster", tmp_path / "roster.csv").returncode == 0
    rows = (folder / "gradebook.csv").read_text().splitlines()[1:]
    assert [row.split(",")[:3] for row in rows] == [["käthe müller", "6.00", "24.00"]]
    assert "Poe,7,A,6.00" in (folder / "canvas.csv").read_text()
    assert "poe,poe@x.org,,6.00," in (tmp_path / "moodle.csv").read_text()
    assert "doejane" not in (folder / "index.html").read_text()
    assert "does not count" in (folder / "doejane_1001" / "report.html").read_text()


def test_an_alias_of_nobody_is_named(folder: Path, tmp_path: Path) -> None:
    aliases = tmp_path / "aliases.csv"
    aliases.write_text("submission,alias\ndoejane_1001,Turing\ndoejane_1002,Hopper\n")
    done = run("report", folder, "--html", tmp_path / "web", "--aliases", aliases)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "there is no such submission, so its alias is not used: doejane_1002"
    assert second.startswith("wrote 2 pages")


def test_the_leaderboard_is_a_page_of_those_with_an_alias(folder: Path, tmp_path: Path) -> None:
    results.write(samples.record("max", samples.timed()), folder / "doejane_1001" / "result.json")
    aliases = tmp_path / "aliases.csv"
    aliases.write_text("doejane_1001,Turing\n")
    done = run("report", folder, "--leaderboard", tmp_path / "speeds.html", "--aliases", aliases)
    assert (done.returncode, done.stdout) == (0, f"wrote {tmp_path / 'speeds.html'}\n"), done.stderr
    assert "Turing" in (tmp_path / "speeds.html").read_text()
    assert not (folder / "index.html").exists()


def test_gradebooks_of_canvas_and_moodle(folder: Path, tmp_path: Path) -> None:
    export = tmp_path / "export.csv"
    export.write_bytes('\ufeffStudent,ID,Section,HW3 (7)\r\n"Doe, Jane",1001,A,\r\n'.encode())
    done = run("report", folder, "--canvas", export, "--moodle", tmp_path / "moodle.csv")
    assert done.returncode == 0, done.stderr
    assert (folder / "canvas.csv").read_bytes() == export.read_bytes().replace(b"1001,A,", b"1001,A,12.00")
    assert "filled 1 of 1 students" in done.stdout
    assert (tmp_path / "moodle.csv").read_text().count("12.00") >= 2


def test_jplag_goes_on_after_what_cannot_be_read_and_names_it(folder: Path, tmp_path: Path) -> None:
    handed = tmp_path / "handed"
    (handed / "zoe").mkdir(parents=True)
    (handed / "zoe" / "softmax_kernel.cu").write_text("int x;")
    (handed / "gone.zip").symlink_to("nowhere")
    (handed / "ann.rar").touch()
    done = run("report", folder, "--jplag", tmp_path / "compare", "--submissions", handed)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[0].startswith("left out: ann.rar is an archive of another kind")
    assert told[1].startswith("left out gone: ")
    assert told[2] == f"wrote 1 submissions to {tmp_path / 'compare'}"


def test_a_record_of_a_newer_major_version_is_refused_clearly(folder: Path) -> None:
    path = folder / "doejane_1001" / "result.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"schema": "2.0"}))
    done = run("report", folder)
    assert done.returncode == 2
    assert f"{path}: written by a newer grader (schema 2.0" in done.stderr
    assert "Update the grader" in done.stderr
    assert not (folder / "gradebook.csv").exists()


@pytest.mark.parametrize(
    "content", [b"", b'{"schema": "1.0", "gra', b"[]", b'{"schema": "1.0"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_damaged_record_is_named_and_the_others_are_reported(folder: Path, content: bytes) -> None:
    path = folder / "doejane_1001" / "result.json"
    path.write_bytes(content)
    done = run("report", folder)
    assert done.returncode == 3
    (told,) = done.stderr.splitlines()
    assert told.startswith(f"left out: {path}: no")
    assert told.endswith("grade that submission again.")
    assert "wrote 1 pages" in done.stdout
    table = (folder / "gradebook.csv").read_text()
    assert "käthe müller,12.00,24.00" in table
    assert "doejane_1001,,," in table


def test_a_folder_that_may_not_be_entered_is_named(folder: Path) -> None:
    (folder / "doejane_1001").chmod(0)
    done = subprocess.run(
        [*GRADER, "report", folder, "--appeal"],
        preexec_fn=without_privileges,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "käthe müller: no speed was measured\n")
    assert "doejane_1001/result.json: no result record: [Errno 13] Permission denied" in done.stderr


def test_damaged_records_alone_are_each_named(folder: Path) -> None:
    paths = sorted(folder.glob("*/result.json"))
    for path in paths:
        path.write_text("{")
    done = run("report", folder)
    assert done.returncode == 2
    assert [line.removeprefix("Error: ").split(": ")[0] for line in done.stderr.splitlines()] == [
        *map(str, paths)
    ]
    assert not (folder / "gradebook.csv").exists()


def test_an_appeal_goes_on_after_a_damaged_record(folder: Path) -> None:
    (folder / "doejane_1001" / "result.json").write_text("{")
    done = run("report", folder, "--appeal")
    assert (done.returncode, done.stdout) == (3, "käthe müller: no speed was measured\n")
    assert "left out: " in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--gradescope", "x.json"), "--gradescope takes one record, and there are 2"),
        (("--jplag", "x"), "--jplag needs --submissions"),
        (("--canvas", "nowhere.csv"), "nowhere.csv"),
        (("--aliases", __file__), "has to be a submission and its alias"),
        (("--aliases", __file__, "--junit", "x.xml"), "--aliases does nothing without --html"),
        (("--column", "HW3"), "--column does nothing without --canvas"),
        (("--roster", __file__), "--roster does nothing without --moodle"),
        (("--submissions", "."), "--submissions does nothing without --jplag"),
        (("--scale",), "--scale does nothing without --canvas or --moodle"),
        (("--scale", "--moodle", "x.csv"), "--moodle: there is no maximum grade to scale to"),
        (("--leaderboard", "x.html"), "--leaderboard shows only those who asked for it"),
        (("--staff",), "--staff needs --html DIR"),
        (("--appeal", "--staff"), "--staff does nothing with --appeal, which writes no report"),
        (("--junit", "x.xml", "--appeal"), "--junit does nothing with --appeal"),
        (("--appeal", "--html", "x"), "--html does nothing with --appeal"),
    ],
)
def test_what_cannot_be_made_says_what_to_name(folder: Path, arguments: tuple[str, ...], said: str) -> None:
    done = run("report", folder, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_without_records_is_refused(tmp_path: Path) -> None:
    done = run("report", tmp_path)
    assert done.returncode == 2
    assert "holds no record" in done.stderr


def test_one_record_gives_every_report(folder: Path, tmp_path: Path) -> None:
    record = folder / "doejane_1001" / "result.json"
    done = run("report", record, "--junit", tmp_path / "j.xml", "--gradescope", tmp_path / "g.json")
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "g.json").read_text())["score"] == 12
    assert "<testsuites" in (tmp_path / "j.xml").read_text()


def test_one_record_has_its_own_page_alone(folder: Path, tmp_path: Path) -> None:
    record = folder / "doejane_1001" / "result.json"
    assert run("report", record.parent).returncode == 0
    assert sorted(path.name for path in record.parent.iterdir()) == ["report.html", "result.json"]
    assert run("report", record, "--html", tmp_path / "web").returncode == 0
    assert [path.name for path in (tmp_path / "web").iterdir()] == ["report.html"]


def test_grading_writes_every_report_even_of_what_cannot_be_graded(tmp_path: Path) -> None:
    submission = tmp_path / "hw3"
    submission.mkdir()
    (submission / "softmax_kernels.cu").write_text("")
    files = {option: tmp_path / f"report.{option}" for option in ("html", "junit", "gradescope", "json")}
    options = [part for option, file in files.items() for part in (f"--{option}", file)]
    done = run("grade", submission, "--problem", "softmax_forward", *options)
    assert all(file.stat().st_size for file in files.values()), done.stderr
    assert done.stdout.splitlines()[-1].startswith("Score: 0.0/")
    seed = results.read(files["json"]).seed
    assert str(seed) not in files["html"].read_text()


def test_a_report_that_cannot_be_written_is_said_and_the_others_are(tmp_path: Path) -> None:
    done = run("grade", tmp_path, "--html", "/proc/page.html", "--json", tmp_path / "r.json")
    assert done.returncode == 3
    assert "/proc/page.html: cannot be written" in done.stderr
    assert (tmp_path / "r.json").exists()


def test_in_github_actions_the_last_line_is_still_the_score(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    done = run("grade", tmp_path, GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert done.stdout.splitlines()[-1].startswith("Score: 0.0/")
    assert "::stop-commands::" in done.stdout
    assert "Softmax forward" in summary.read_text()


def test_an_appeal_says_which_records_their_raw_times_do_not_bear_out(folder: Path, tmp_path: Path) -> None:
    done = run("report", folder / "doejane_1001" / "result.json", "--appeal")
    assert (done.returncode, done.stdout) == (0, "doejane_1001: no speed was measured\n")
    results.write(samples.record("max", samples.timed()), tmp_path / "result.json")
    done = run("report", tmp_path, "--appeal")
    assert done.returncode == 2
    assert "softmax_forward: recorded PASS at 8.000x (7.920 to 8.080) of 6.5x; " in done.stdout
    assert "max: a record is not what its own raw times say" in done.stderr
