"""What counts as a submission, above all in the names that Canvas makes."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from grader.submissions.discovery import LATE, Attachment, Discovery, discover, parse
from grader.submissions.submission import collect
from grader.submissions.trees import KINDS

WANTED = ("layernorm_kernel.cu", "softmax_kernel.cu")


def made(folder: Path, *names: str) -> Discovery:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return discover(folder, WANTED)


@pytest.mark.parametrize(
    ("name", "student", "late", "number", "file"),
    [
        ("doejane_1001_556677_softmax_kernel.cu", "doejane_1001", False, 556677, "softmax_kernel.cu"),
        ("doejane_LATE_1001_556677_softmax_kernel.cu", "doejane_1001", True, 556677, "softmax_kernel.cu"),
        ("müllerjörg_7_8_softmax_kernel.cu", "müllerjörg_7", False, 8, "softmax_kernel.cu"),
        ("doe2jane3_1001_5_softmax_kernel.cu", "doe2jane3_1001", False, 5, "softmax_kernel.cu"),
        ("doejane_1001_5_hw_3_4_softmax.cu", "doejane_1001", False, 5, "hw_3_4_softmax.cu"),
        ("李雷_12_5_softmax_kernel-2.cu", "李雷_12", False, 5, "softmax_kernel-2.cu"),
        ("anon_x7Kq2_99_softmax_kernel.cu", "anon_x7Kq2", False, 99, "softmax_kernel.cu"),
        ("LATE_anon_77_99_softmax_kernel.cu", "anon_77", True, 99, "softmax_kernel.cu"),
        ("doejane_1001_text.html", "doejane_1001", False, 0, "text.html"),
        ("doejane_LATE_1001_link.html", "doejane_1001", True, 0, "link.html"),
    ],
)
def test_the_names_of_canvas_are_understood(
    name: str, student: str, late: bool, number: int, file: str
) -> None:
    assert parse(Path(name)) == Attachment(student, late, number, file, Path(name))


def test_umlauts_that_a_mac_took_apart_belong_to_the_same_student() -> None:
    name = "müller_7_8_softmax_kernel.cu"
    apart = parse(Path(unicodedata.normalize("NFD", name)))
    whole = parse(Path(name))
    assert apart
    assert whole
    assert apart.student == whole.student


@pytest.mark.parametrize("name", ["softmax_kernel.cu", "README.md", "doejane_1001.zip", "_1001_5_a.cu"])
def test_other_names_are_not_taken_for_canvas_names(name: str) -> None:
    found = parse(Path(name))
    assert found is None


def test_the_files_of_a_student_become_one_submission(tmp_path: Path) -> None:
    found = made(
        tmp_path / "in",
        "doejane_LATE_1001_5_softmax_kernel.cu",
        "doejane_LATE_1001_6_layernorm_kernel-1.cu",
        "doejane_LATE_1001_7_tile-16.cuh",
        "doejane_LATE_1001_8_report.pdf",
        "roerick_1002_9_softmax_kernel.cu",
    )
    jane, rick = found.entries
    assert (jane.name, rick.name) == ("doejane_1001", "roerick_1002")
    assert jane.notes == (LATE,)
    assert rick.notes == ()
    folder = jane.lay_out(tmp_path)
    assert {path.name for path in folder.iterdir()} == {*WANTED, "tile-16.cuh", "tile.cuh"}
    assert (folder / "layernorm_kernel.cu").read_text() == "doejane_LATE_1001_6_layernorm_kernel-1.cu"


def test_of_a_file_handed_in_again_the_newest_is_taken_and_said(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        "doe_1_30_softmax_kernel-2.cu",
        "doe_1_9_softmax_kernel.cu",
        "doe_1_20_softmax_kernel-1.cu",
    )
    (entry,) = found.entries
    assert entry.files["softmax_kernel.cu"].name == "doe_1_30_softmax_kernel-2.cu"
    (note,) = entry.notes
    assert note == (
        "softmax_kernel.cu was handed in 3 times: took softmax_kernel-2.cu, the newest, "
        "not softmax_kernel-1.cu, softmax_kernel.cu"
    )


@pytest.mark.parametrize(
    ("archive", "source", "taken", "said"),
    [(9, 8, "archive", "left out softmax_kernel.cu"), (8, 9, "source", "newer than hw3.zip")],
)
def test_of_an_archive_and_a_source_file_the_newest_is_taken_and_said(
    archive: int, source: int, taken: str, said: str, tmp_path: Path
) -> None:
    (entry,) = made(tmp_path, f"doe_1_{archive}_hw3.zip", f"doe_1_{source}_softmax_kernel.cu").entries
    assert (entry.path is not None) == (taken == "archive")
    assert ("softmax_kernel.cu" in entry.files) == (taken == "source")
    assert said in entry.notes[0]


def test_a_report_beside_an_archive_takes_nothing_away(tmp_path: Path) -> None:
    (entry,) = made(tmp_path, "doe_1_8_hw3.zip", "doe_1_9_report.pdf").entries
    assert entry.path == tmp_path / "doe_1_8_hw3.zip"
    assert entry.notes == ()


def test_a_text_without_a_file_is_an_empty_submission(tmp_path: Path) -> None:
    (entry,) = made(tmp_path / "in", "doe_1_text.html").entries
    assert not list(entry.lay_out(tmp_path).iterdir())


def test_folders_and_zips_are_submissions_and_clutter_is_not(tmp_path: Path) -> None:
    found = made(
        tmp_path,
        "zoe/softmax_kernel.cu",
        "adam.zip",
        "BEN.ZIP",
        ".DS_Store",
        "._adam.zip",
        "__MACOSX/adam/._softmax_kernel.cu",
        ".git/config",
        "grades.xlsx",
    )
    assert [entry.name for entry in found.entries] == ["BEN", "adam", "zoe"]
    assert found.ignored == ("grades.xlsx",)


def test_what_is_no_plain_file_is_not_opened_and_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.zip")
    os.mkfifo(tmp_path / "doe_1_5_softmax_kernel.cu")
    (tmp_path / "link.zip").symlink_to(tmp_path / "pipe.zip")
    found = made(tmp_path, "adam.zip")
    assert [entry.name for entry in found.entries] == ["adam"]
    names = ("doe_1_5_softmax_kernel.cu", "link.zip", "pipe.zip")
    assert found.skipped == tuple(f"{name} is neither a file nor a folder" for name in names)


def test_archives_of_every_kind_are_submissions(tmp_path: Path) -> None:
    found = made(tmp_path, "adam.tar.gz", "ben.7z", "cleo.TAR", "dora.zip", "doe_1_5_hw3.TGZ")
    assert [entry.name for entry in found.entries] == ["adam", "ben", "cleo", "doe_1", "dora"]
    assert not found.skipped


def test_an_archive_of_another_kind_is_said(tmp_path: Path) -> None:
    found = made(tmp_path, "adam.rar", "doe_1_5_hw3.tar.zst", "doe_1_6_softmax_kernel.cu", "notes.txt")
    assert [entry.name for entry in found.entries] == ["doe_1"]
    assert found.entries[0].notes == (f"left out hw3.tar.zst: of archives, {KINDS} are read",)
    assert found.skipped == tuple(
        f"{name} is an archive of another kind than {KINDS}: unpack it into a folder"
        for name in ("adam.rar", "doe_1_5_hw3.tar.zst")
    )
    assert found.ignored == ("notes.txt",)


def test_a_source_that_lies_in_no_folder_is_said(tmp_path: Path) -> None:
    found = made(tmp_path, "adam/softmax_kernel.cu", "dave.cu", "notes.txt", "softmax_kernel.cu")
    assert [entry.name for entry in found.entries] == ["adam"]
    assert found.skipped == tuple(
        f"{name} is a single file: put it into a folder, under the name that the assignment gives it"
        for name in ("dave.cu", "softmax_kernel.cu")
    )
    assert found.ignored == ("notes.txt",)


def test_a_source_in_capitals_is_taken_for_the_wanted_file(tmp_path: Path) -> None:
    (entry,) = made(tmp_path / "in", "doe_1_5_SOFTMAX_KERNEL.CU").entries
    with collect(entry.lay_out(tmp_path), WANTED) as submission:
        assert submission.notes == ("took SOFTMAX_KERNEL.CU for softmax_kernel.cu",)


def test_names_are_distinct_printable_and_never_that_of_a_report(tmp_path: Path) -> None:
    found = made(tmp_path, "doe/a.cu", "doe.zip", "two\nlines/a.cu", "two\tlines/a.cu", "gradebook.csv/a.cu")
    (tmp_path / os.fsdecode(b"not-utf8-\xff")).mkdir()
    found = discover(tmp_path, WANTED)
    names = [entry.name for entry in found.entries]
    assert names == ["doe", "doe.zip", "gradebook.csv-2", "not-utf8-_", "two_lines", "two_lines-2"]
