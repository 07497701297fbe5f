"""Archives of all kinds hold the same files, and none of them can do harm."""

from __future__ import annotations

import io
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import py7zr
import pytest

from grader.submissions import trees
from grader.submissions.submission import collect
from grader.submissions.trees import SubmissionError, UnreadableError, stem

if TYPE_CHECKING:
    from pathlib import Path

WANTED = ("softmax_kernel.cu", "layernorm_kernel.cu")
KINDS = ("zip", "tar", "tar.gz", "tgz", "tar.bz2", "tar.xz", "7z")


def packed(path: Path, members: dict[str, bytes]) -> Path:
    """An archive of the kind that the name of ``path`` says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
    elif path.suffix == ".7z":
        with py7zr.SevenZipFile(path, "w") as seven_zip:
            for name, content in members.items():
                seven_zip.writestr(content, name)
    else:
        kind = path.suffix.replace(".t", ":").replace(":ar", "").replace(".", ":")
        with tarfile.open(path, f"w{kind}") as tar:  # type: ignore[call-overload]
            for name, content in members.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_archive_holds_the_same(tmp_path: Path, kind: str) -> None:
    members = {f"hw3/{name}": f"// {name}\n".encode() for name in WANTED}
    path = packed(tmp_path / f"ann.{kind}", {**members, "hw3/notes.txt": b"x", "__MACOSX/a.cu": b"x"})
    with collect(path, WANTED) as submission:
        assert submission.name == stem(path.name) == "ann"
        assert submission.contents(WANTED[0])[WANTED[0]] == b"// softmax_kernel.cu\n"
        assert submission.notes[-1] == "ignored hw3/notes.txt"
        assert not submission.problems


def test_the_content_says_the_kind_of_an_archive(tmp_path: Path) -> None:
    path = packed(tmp_path / "ann.tar.xz", {WANTED[0]: b"x"}).rename(tmp_path / "ann.tar")
    with collect(path, WANTED) as submission:
        assert set(submission.files) == {WANTED[0]}


@pytest.mark.parametrize("kind", KINDS)
def test_archives_in_a_submission_are_opened(tmp_path: Path, kind: str) -> None:
    inner = packed(tmp_path / f"part.{kind}", {f"a/{WANTED[0]}": b"// inner\n"}).read_bytes()
    path = packed(tmp_path / "outer.zip", {f"hw3/part.{kind}": inner, "hw3/report.pdf": b"x"})
    with collect(path, WANTED) as submission:
        assert submission.contents(WANTED[0])[WANTED[0]] == b"// inner\n"
        assert submission.notes[0] == f"{WANTED[0]} was taken from hw3/part.{kind}/a/"


def test_only_one_level_of_archives_is_opened(tmp_path: Path) -> None:
    content = packed(tmp_path / "a.zip", {WANTED[0]: b"x"}).read_bytes()
    content = packed(tmp_path / "b.zip", {"a.zip": content}).read_bytes()
    path = packed(tmp_path / "c.zip", {"b.zip": content})
    with pytest.raises(
        SubmissionError, match=r"holds no source file.*Found b\.zip/a\.zip in it: unpack that"
    ):
        collect(path, WANTED)


def test_an_archive_beside_the_files_is_not_opened(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.zip", {WANTED[0]: b"x", "old.zip": b"this is no zip"})
    with collect(path, WANTED) as submission:
        assert submission.notes == ("ignored old.zip",)


@pytest.mark.parametrize("kind", KINDS)
def test_an_archive_cut_short_is_damaged(tmp_path: Path, kind: str) -> None:
    path = packed(tmp_path / f"a.{kind}", {WANTED[0]: bytes(range(256)) * 40, "b.cu": bytes(range(255)) * 40})
    path.write_bytes(path.read_bytes()[:-300] if kind != "tar" else path.read_bytes()[:9000])
    with pytest.raises(SubmissionError, match=rf"a\.{kind} is not an archive or is damaged.*Pack it again"):
        collect(path, WANTED)


@pytest.mark.parametrize("kind", ["tar", "tar.gz"])
@pytest.mark.parametrize("name", ["../softmax_kernel.cu", "/etc/softmax_kernel.cu"])
def test_a_member_that_leads_out_of_a_tar(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(SubmissionError, match="would escape its folder"):
        collect(packed(tmp_path / f"a.{kind}", {name: b"x"}), WANTED)


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_what_is_no_plain_file_of_a_tar_is_not_read(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        info = tarfile.TarInfo(WANTED[0])
        info.type, info.linkname = kind, "/etc/passwd"
        tar.addfile(info)
    with pytest.raises(SubmissionError, match=r"a\.tar holds a link, softmax_kernel\.cu"):
        collect(tmp_path / "a.tar", WANTED)


@pytest.mark.parametrize("header", [False, True])
def test_an_encrypted_7z(tmp_path: Path, header: bool) -> None:
    with py7zr.SevenZipFile(tmp_path / "a.7z", "w", password="x", header_encryption=header) as archive:
        archive.writestr("x", WANTED[0])
    with pytest.raises(SubmissionError, match=r"encrypted\. Hand it in without a password"):
        collect(tmp_path / "a.7z", WANTED)


@pytest.mark.parametrize("kind", ["tar.gz", "tar.xz", "7z"])
def test_an_archive_that_unpacks_to_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(trees, "_MOST_UNPACKED_BYTES", 1 << 20)
    path = packed(tmp_path / f"a.{kind}", {"model.bin": bytes(2 << 20), WANTED[0]: b"x"})
    with pytest.raises(SubmissionError, match=r"unpacks to more than .* Hand in the source files alone"):
        collect(path, WANTED)


def test_archives_in_an_archive_have_its_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "MOST_TOTAL_BYTES", 1 << 20)
    content = packed(tmp_path / "a.tar", {WANTED[0]: bytes(800 << 10)}).read_bytes()
    path = packed(tmp_path / "b.tar", {"a.tar": content, "c.tar": content})
    with pytest.raises(SubmissionError, match="the archives in it are more than"):
        collect(path, WANTED)


def test_without_py7zr_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = packed(tmp_path / "a.7z", {WANTED[0]: b"x"})
    monkeypatch.setitem(sys.modules, "py7zr", None)
    with pytest.raises(UnreadableError, match=r"py7zr is not installed\. Install it \(pip install"):
        collect(path, WANTED)
