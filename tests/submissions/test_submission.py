"""Every way to hand in something wrong, and the two or three ways to hand in something right."""

from __future__ import annotations

import errno
import os
import stat
import zipfile
from pathlib import Path

import pytest

from grader.submissions.submission import collect
from grader.submissions.trees import EmptyError, SubmissionError, UnreadableError

WANTED = ("softmax_kernel.cu", "layernorm_kernel.cu")


def _folder(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.fsencode(f"// {name}\n"))
    return root


def _zip(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _link(name: str) -> zipfile.ZipInfo:
    link = zipfile.ZipInfo(name)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    return link


@pytest.mark.parametrize("place", ["", "src/", "hw3/", "hw3/src/", "a b/\u00fc/hw3/src/"])
def test_finds_files_at_any_depth(tmp_path: Path, place: str) -> None:
    _folder(tmp_path, *(place + name for name in WANTED), place + "common.cuh", place + "unrelated.h")
    (tmp_path / place / WANTED[0]).write_text('#include "common.cuh"\n')
    with collect(tmp_path, WANTED) as submission:
        assert set(submission.files) == set(WANTED)
        assert submission.contents(WANTED[0])["common.cuh"] == f"// {place}common.cuh\n".encode()
        assert set(submission.contents(WANTED[0])) == {*WANTED, "common.cuh"}
        told = [f"{' and '.join(WANTED)} were taken from {place}"] if place else []
        assert submission.notes == (*told, f"ignored {place}unrelated.h")
        assert not submission.problems
        copy = submission.files[WANTED[0]].parent
    assert not copy.exists()


def test_nothing_is_said_of_a_folder_with_the_files_alone(tmp_path: Path) -> None:
    with collect(_folder(tmp_path, *WANTED), WANTED) as submission:
        assert submission.notes == ()


def test_a_zip_counts_the_same_as_its_folder(tmp_path: Path) -> None:
    _folder(tmp_path / "ann", *WANTED)
    archive = _zip(
        tmp_path / "ann.zip", **{n: f"// {n}\n" for n in WANTED}, **{"__MACOSX/._softmax_kernel.cu": "x"}
    )
    with collect(tmp_path / "ann", WANTED) as folder, collect(archive, WANTED) as zipped:
        assert folder.sha256 == zipped.sha256
        assert folder.name == zipped.name == "ann"


def test_the_private_copy_does_not_follow_later_changes(tmp_path: Path) -> None:
    _folder(tmp_path, *WANTED)
    with collect(tmp_path, WANTED) as submission:
        (tmp_path / WANTED[0]).write_text("changed")
        assert submission.contents(WANTED[0])[WANTED[0]] == f"// {WANTED[0]}\n".encode()


def test_another_name_is_named_as_the_one_to_rename(tmp_path: Path) -> None:
    name = "Softmax-kernel.cu"
    _folder(tmp_path, name, "layernorm_kernel.cu")
    with collect(tmp_path, WANTED) as submission:
        assert set(submission.files) == {"layernorm_kernel.cu"}
        assert submission.problems == {
            "softmax_kernel.cu": "softmax_kernel.cu is missing. "
            f"Found {name}: rename it to softmax_kernel.cu."
        }


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_file_in_utf_16_is_to_be_saved_as_utf_8(tmp_path: Path, encoding: str) -> None:
    _folder(tmp_path, *WANTED)
    (tmp_path / "softmax_kernel.cu").write_text("\ufeff// ü\n", encoding)
    with collect(tmp_path, WANTED) as submission:
        assert (set(submission.files), submission.notes) == ({"layernorm_kernel.cu"}, ())
        assert submission.problems == {
            "softmax_kernel.cu": "softmax_kernel.cu is in UTF-16. Save it as UTF-8."
        }


def test_a_header_in_utf_16_is_noted(tmp_path: Path) -> None:
    _folder(tmp_path, *WANTED)
    (tmp_path / "softmax_kernel.cu").write_text('#include "row.cuh"\n')
    (tmp_path / "row.cuh").write_text("\ufeff// ü\n", "utf-16-le")
    with collect(tmp_path, WANTED) as submission:
        assert set(submission.files) == set(WANTED)
        assert submission.notes == ("row.cuh is in UTF-16: save it as UTF-8",)


@pytest.mark.parametrize("name", ["softmax_kernel.CU", "Softmax_Kernel.cu"])
def test_a_name_in_another_case_is_taken_with_a_note(tmp_path: Path, name: str) -> None:
    _folder(tmp_path, f"src/{name}", "src/layernorm_kernel.cu")
    with collect(tmp_path, WANTED) as submission:
        assert submission.contents("softmax_kernel.cu")["softmax_kernel.cu"] == f"// src/{name}\n".encode()
        assert submission.notes[0] == f"took src/{name} for softmax_kernel.cu"
        assert not submission.problems


def test_an_exact_name_counts_before_the_same_in_another_case(tmp_path: Path) -> None:
    _folder(tmp_path, "old/Softmax_Kernel.cu", "old/layernorm_kernel.cu", "softmax_kernel.cu")
    with collect(tmp_path, WANTED) as submission:
        content = submission.contents("softmax_kernel.cu")["softmax_kernel.cu"]
        assert content == b"// softmax_kernel.cu\n"


def test_a_file_that_is_wanted_itself_is_not_the_one_to_rename(tmp_path: Path) -> None:
    _folder(tmp_path, "layernorm_kernel.cu")
    with collect(tmp_path, WANTED) as submission:
        assert submission.problems == {"softmax_kernel.cu": "softmax_kernel.cu is missing."}


def test_an_archive_with_a_nameless_member(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "nameless.zip", "w") as file:
        file.writestr("softmax_kernel.cu", "x")
        file.writestr("?", "x")
    data = (tmp_path / "nameless.zip").read_bytes()
    (tmp_path / "nameless.zip").write_bytes(nameless(data))
    with collect(tmp_path / "nameless.zip", WANTED) as submission:
        assert set(submission.files) == {"softmax_kernel.cu"}


def nameless(data: bytes) -> bytes:
    """The archive with a last entry of the directory whose name is empty."""
    entry, end = data.rindex(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    assert data[entry + 28 : entry + 30] == b"\x01\0"
    name = data[entry : entry + 28] + b"\0\0" + data[entry + 30 : end - 1]
    tail = data[end:]
    size = int.from_bytes(tail[12:16], "little") - 1
    return data[:entry] + name + tail[:12] + size.to_bytes(4, "little") + tail[16:]


def test_a_member_whose_compression_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "damaged.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as file:
        file.writestr("softmax_kernel.cu", "x" * 1000)
    data = bytearray(path.read_bytes())
    start = 30 + len("softmax_kernel.cu") + 9
    data[start : start + 12] = bytes(12)
    data[start - 5] = 0xFF
    path.write_bytes(data)
    with pytest.raises(SubmissionError), collect(path, WANTED):
        pass


def test_a_header_whose_name_is_also_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "clash.zip"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("softmax_kernel.cu", '#include "a.h"\n#include "a.h/b.h"\n')
        file.writestr("a.h", "")
        file.writestr("a.h/b.h", "")
    with pytest.raises(SubmissionError, match="both a file and a folder"), collect(path, WANTED):
        pass


def test_two_files_of_one_name_are_said(tmp_path: Path) -> None:
    _folder(tmp_path, *WANTED, "old/softmax_kernel.cu")
    with collect(tmp_path, WANTED) as submission:
        assert submission.contents(WANTED[0])[WANTED[0]] == b"// softmax_kernel.cu\n"
        assert "took softmax_kernel.cu, not old/softmax_kernel.cu" in submission.notes[0]


def test_a_missing_path_suggests_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "reference").mkdir()
    with pytest.raises(UnreadableError, match=r"refrence does not exist.*Did you mean .*reference\?"):
        collect(tmp_path / "refrence", WANTED)


@pytest.mark.parametrize("names", [(), ("report.pdf",)])
def test_a_folder_without_sources(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(EmptyError, match=r"holds no source file. Expected: softmax_kernel.cu, layernorm"):
        collect(_folder(tmp_path, *names), WANTED)


def test_a_file_in_several_languages_is_asked_for_once(tmp_path: Path) -> None:
    with pytest.raises(SubmissionError, match=r"Expected: norm\.cu or norm\.py, model\.py\."):
        collect(_folder(tmp_path), ["norm.cu", "norm.py", "model.py"])


def test_not_an_archive(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"this is no zip")
    (tmp_path / "b.rar").write_bytes(b"Rar!")
    with pytest.raises(SubmissionError, match=r"a\.zip is not an archive or is damaged"):
        collect(tmp_path / "a.zip", WANTED)
    with pytest.raises(
        SubmissionError, match=r"b\.rar is neither a folder nor an archive that can be read: "
    ):
        collect(tmp_path / "b.rar", WANTED)


@pytest.mark.parametrize("cut", [40, 90])
def test_a_damaged_archive(tmp_path: Path, cut: int) -> None:
    path = _zip(tmp_path / "a.zip", **{"softmax_kernel.cu": "x" * 50_000})
    content = bytearray(path.read_bytes())
    content[cut : cut + 8] = b"\xff" * 8
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match="damaged"):
        collect(path, WANTED)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(errno.EIO, "Input/output error"), UnreadableError),
        (OSError("Invalid data stream"), SubmissionError),
    ],
)
def test_a_disk_that_fails_is_not_a_damaged_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, kind: type[Exception]
) -> None:
    path = _zip(tmp_path / "a.zip", **{"softmax_kernel.cu": "x"})

    def read(_member: object, _size: int) -> bytes:
        raise error

    monkeypatch.setattr(zipfile.ZipExtFile, "read", read)
    with pytest.raises(kind, match=str(error.strerror or error)):
        collect(path, WANTED)


def test_an_encrypted_archive(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", **{"softmax_kernel.cu": "x"})
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=r"encrypted\. Hand it in without a password"):
        collect(path, WANTED)


@pytest.mark.parametrize("name", ["../softmax_kernel.cu", "/etc/softmax_kernel.cu", "..\\x.cu", "C:\\x.cu"])
def test_an_escaping_member(tmp_path: Path, name: str) -> None:
    with pytest.raises(SubmissionError, match="would escape its folder"):
        collect(_zip(tmp_path / "a.zip", **{name: "x"}), WANTED)


def test_a_link_in_an_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(_link("softmax_kernel.cu"), "/etc/passwd")
    with pytest.raises(SubmissionError, match=r"holds a link, softmax_kernel\.cu"):
        collect(tmp_path / "a.zip", WANTED)


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        (
            {WANTED[0]: "".join(f'"{n}.h" ' for n in range(500)), **{f"{n}.h": "" for n in range(500)}},
            "more than 500 or 64 MiB",
        ),
        ({WANTED[0]: "".join(map(str, range(1_000_000)))}, "larger than 4 MiB"),
        ({"softmax_kernel.cu": "\0" * (3 << 20)}, "unpacks to"),
    ],
)
def test_too_big_archives(tmp_path: Path, members: dict[str, str], reason: str) -> None:
    with pytest.raises(SubmissionError, match=reason):
        collect(_zip(tmp_path / "a.zip", **members), WANTED)


def test_a_homework_with_many_files_is_listed_and_not_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "last first" / "hw3.zip"
    path.parent.mkdir()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in WANTED:
            archive.writestr(f"llmsys hw3/src/{name}", '#include "includes/reduce.h"\n')
        archive.writestr("llmsys hw3/src/includes/reduce.h", "#pragma once\n")
        archive.writestr("llmsys hw3/minitorch/reduce.h", "#error another one\n")
        archive.writestr("llmsys hw3/workdir/model.bin", b"\0" * (80 << 20))
        archive.writestr(_link("llmsys hw3/venv/bin/python"), "/usr/bin/python3")
        for n in range(20_000):
            archive.writestr(f"llmsys hw3/workdir/données {n}.txt", "")
    with collect(path, WANTED) as submission:
        assert submission.files.keys() == set(WANTED)
        assert submission.contents(WANTED[1]).keys() == {*WANTED, "includes/reduce.h"}
        assert submission.notes[0] == f"{' and '.join(WANTED)} were taken from llmsys hw3/src/"
        assert submission.notes[1].endswith("and 20,000 more files")


def test_all_files_come_from_the_folder_that_holds_most_of_them(tmp_path: Path) -> None:
    _folder(tmp_path, WANTED[0], *(f"{at}/{name}" for at in ("hw3/old", "hw3/src") for name in WANTED))
    with collect(tmp_path, WANTED) as submission:
        assert submission.contents(WANTED[0])[WANTED[0]] == b"// hw3/src/softmax_kernel.cu\n"
        assert submission.notes[0] == (
            "softmax_kernel.cu is there more than once: took hw3/src/softmax_kernel.cu, "
            "not hw3/old/softmax_kernel.cu, softmax_kernel.cu"
        )


def test_equal_copies_are_no_reason_to_worry(tmp_path: Path) -> None:
    _folder(tmp_path, *WANTED)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / WANTED[0]).write_text(f"// {WANTED[0]}\n")
    with collect(tmp_path, WANTED) as submission:
        assert submission.notes == (
            "softmax_kernel.cu is there more than once: took softmax_kernel.cu; the others hold the same",
        )


def test_files_of_different_folders_keep_their_own_headers(tmp_path: Path) -> None:
    for name in WANTED:
        _folder(tmp_path, f"{name[:4]}/{name}", f"{name[:4]}/reduce.h")
        (tmp_path / name[:4] / name).write_text('#include "reduce.h"\n')
    with collect(tmp_path, WANTED) as submission:
        for name in WANTED:
            contents = submission.contents(name)
            assert contents.keys() == {name, "reduce.h"}
            assert contents["reduce.h"] == f"// {name[:4]}/reduce.h\n".encode()


@pytest.mark.parametrize(
    ("written", "there", "found"),
    [
        ("../sum.h", "sum.h", "../sum.h"),
        ("sum.h", "sum.h", "../sum.h"),
        ("sum.h", "includes/sum.h", "../includes/sum.h"),
        ("../includes/sum.h", "includes/sum.h", "../includes/sum.h"),
        ("sum.h", "a/b/c/sum.h", None),
    ],
)
def test_a_header_that_lies_above_or_in_a_folder_beside_is_found(
    written: str, there: str, found: str | None, tmp_path: Path
) -> None:
    _folder(tmp_path, f"src/{WANTED[0]}", there, "old/deep/in/sum.h")
    (tmp_path / "src" / WANTED[0]).write_text(f'#include "{written}"\n')
    with collect(tmp_path, WANTED) as submission:
        contents = submission.contents(WANTED[0])
        assert contents.keys() == ({WANTED[0], found} if found else {WANTED[0]})
        assert not found or contents[found] == f"// {there}\n".encode()
        ignored = "old/deep/in/sum.h" if found else f"{there}, old/deep/in/sum.h"
        assert submission.notes[-1] == f"ignored {ignored}"


def test_a_header_beside_the_source_counts_before_one_above(tmp_path: Path) -> None:
    _folder(tmp_path, f"src/{WANTED[0]}", "src/sum.h", "sum.h")
    (tmp_path / "src" / WANTED[0]).write_text('#include "sum.h"\n')
    with collect(tmp_path, WANTED) as submission:
        assert submission.contents(WANTED[0])["sum.h"] == b"// src/sum.h\n"
        assert submission.notes[-1] == "ignored sum.h"


def test_names_that_are_no_utf_8(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"M\xfcller")
    _folder(root, *(os.fsdecode(b"l\xf6sung/") + name for name in WANTED), os.fsdecode(b"\xff.h"))
    with collect(root, WANTED) as submission:
        assert submission.name == "M\ufffdller"
        assert submission.files.keys() == set(WANTED)
        assert [note.encode() for note in submission.notes] == [
            f"{' and '.join(WANTED)} were taken from l\ufffdsung/".encode(),
            "ignored \ufffd.h".encode(),
        ]
    with pytest.raises(UnreadableError, match="M\ufffdllex does not exist"):
        collect(tmp_path / os.fsdecode(b"M\xfcllex"), WANTED)


def test_windows_separators_in_an_archive(tmp_path: Path) -> None:
    archive = _zip(tmp_path / "a.zip", **{f"src\\{name}": "x" for name in WANTED})
    with collect(archive, WANTED) as submission:
        assert submission.files.keys() == set(WANTED)


def test_an_archive_in_the_folder_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmptyError, match=r"Found hw3\.rar in it: unpack that first"):
        collect(_folder(tmp_path, "hw3.rar"), WANTED)


def test_an_archive_that_lies_about_its_sizes(tmp_path: Path) -> None:
    path = _zip(tmp_path / "a.zip", **{"softmax_kernel.cu": "\0" * (8 << 20)})
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02") + 24
    content[at : at + 4] = (100).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(SubmissionError, match=r"damaged|larger"):
        collect(path, WANTED)


def test_links_in_a_folder_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.cu"
    secret.write_text("secret")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "softmax_kernel.cu").symlink_to(secret)
    with pytest.raises(SubmissionError, match=r"softmax_kernel\.cu is a link"):
        collect(tmp_path / "a", WANTED)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "src").symlink_to(tmp_path)
    with pytest.raises(SubmissionError, match="no source file"):
        collect(tmp_path / "b", WANTED)


def test_a_fifo_does_not_block(tmp_path: Path) -> None:
    _folder(tmp_path, "layernorm_kernel.cu")
    os.mkfifo(tmp_path / "softmax_kernel.cu")
    with collect(tmp_path, WANTED) as submission:
        assert "softmax_kernel.cu" in submission.problems
    for name in ("hw3.zip", "hw3"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(SubmissionError, match=f"{name} is neither a folder nor an archive"):
            collect(tmp_path / name, WANTED)


def _reason_for_an_ordinary_user(path: Path) -> str:
    """Root may read everything, so collect as somebody else, in a child."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        try:
            collect(path, WANTED)
        except UnreadableError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


@pytest.mark.parametrize(
    ("path", "closed"), [(".", "."), (".", "softmax_kernel.cu"), (".", "src"), ("hw3.zip", "hw3.zip")]
)
def test_what_may_not_be_read_is_not_the_students_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, closed: str
) -> None:
    folder = _folder(tmp_path / "a", *WANTED, "src/tile.cuh")
    _zip(folder / "hw3.zip", **{"softmax_kernel.cu": "x"})
    monkeypatch.chdir(folder)  # the folders above belong to this user alone
    (folder / closed).chmod(0)
    assert _reason_for_an_ordinary_user(Path(path)) == (
        f"cannot read {closed}: Permission denied. Make it readable (chmod -R u+rX, if it is yours) and "
        "grade again."
    )
    (folder / closed).chmod(0o755)
