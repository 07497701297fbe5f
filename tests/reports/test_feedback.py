"""Feedback in bulk: each page lies where Moodle or Canvas looks for that of this student."""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING

import pytest
import report_samples as samples

from grader.reports.feedback import Feedback, archive
from grader.reports.moodle import RosterError
from grader.reports.request import ReportRequest, run

if TYPE_CHECKING:
    from pathlib import Path

WORKSHEET = "Identifier,Full name,Email address\nParticipant 78,Zoë_M Müller,zoe@uni.edu\n"


def paths(made: Feedback) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(made.archive)) as packed:
        return {name: packed.read(name).decode() for name in packed.namelist()}


def test_moodle_finds_the_participant_in_the_name_of_the_folder() -> None:
    pages = {"Jane Doe_77_assignsubmission_file": "jane", "zoe@uni.edu": "zoë"}
    assert paths(archive(pages, {}, WORKSHEET)) == {
        "Jane Doe_77_assignsubmission_file_/feedback.html": "jane",
        "Zoë M Müller_78_assignsubmission_file_/feedback.html": "zoë",
    }
    for path in paths(archive(pages, {}, WORKSHEET)):  # as Moodle takes it apart
        assert re.fullmatch(r"[^_]+_\d+_assignsubmission_file_/feedback\.html", path)


def test_canvas_finds_user_and_attachment_in_the_name_of_the_file() -> None:
    made = archive({"doejane_1001": "jane"}, {"doejane_1001": 556677})
    assert paths(made) == {"doejane_1001_556677_feedback.html": "jane"}
    assert made.notices == ("feedback for 1 students",)


def test_nobody_is_left_out_without_a_word() -> None:
    made = archive({"hw1": "page", "doejane_1001": None}, {"doejane_1001": 5})
    assert paths(made) == {}
    assert "no result yet, so left out: doejane_1001" in made.notices
    assert "neither Moodle nor Canvas would know whose it is, so left out: hw1" in made.notices[-1]
    with pytest.raises(RosterError, match="none of the columns"):
        archive({"hw1": "page"}, {}, "Kennung\n")


def test_pages_are_those_of_students_and_of_whom_a_submission_counts_for(tmp_path: Path) -> None:
    for name in ("doejane_1001_7_hw.zip", "doejane_LATE_1001_9_hw-1.zip", "readme.txt"):
        (tmp_path / name).touch()
    out = tmp_path / "feedback.zip"
    request = ReportRequest(
        {"doejane_1001": samples.record(), "old": samples.record()},
        path=tmp_path,
        title="HW3",
        superseded=["old"],
        students={"doejane_1001": ("doejane_1001", "roejohn_1002")},
        damaged=["broken"],
        feedback=out,
        submissions=tmp_path,
    )
    notices = list(run(request))
    shown = paths(Feedback(out.read_bytes(), ()))
    assert list(shown) == ["doejane_1001_9_feedback.html", "roejohn_1002_9_feedback.html"]
    assert all("Softmax forward" in page and "config_sha256" not in page for page in shown.values())
    assert notices[-1] == f"wrote {out}"
    assert "no result yet, so left out: broken" in notices
