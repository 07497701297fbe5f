"""The package that students get: it grades as the teacher's own assignment, and holds no right answers."""

from __future__ import annotations

import zipfile
from errno import ENOSPC
from pathlib import Path
from shutil import copytree, make_archive

import pytest
from assignments.own_assignment import RIGHT, write

from grader.assignments import marker
from grader.assignments.assignment import available, load, packages, read
from grader.assignments.packing import pack, shown_cases, unpack, version
from grader.assignments.rules import AssignmentError
from grader.cli.arguments import FaultError
from grader.cli.main import commands
from grader.run.grading import GradingRequest, grade
from grader.run.options import GradingOptions

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's folder for data."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """An assignment with all that students do not get."""
    folder = write(tmp_path)
    for name in ("reference/int_add.cu", "mutants/table.py", "variants/int_add/other.cu"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    return folder


def test_it_holds_no_right_answers_and_is_the_same_assignment(own: Path, tmp_path: Path) -> None:
    pack(read(own), tmp_path / "own.zip")
    with zipfile.ZipFile(tmp_path / "own.zip") as packed:
        assert sorted(packed.namelist()) == [
            "own/assignment.toml",
            "own/problems/half_scale.py",
            "own/problems/int_add.py",
            "own/problems/sizes.py",
            "own/student_template/HANDOUT.md",
        ]
    assert "own" not in available()
    assert unpack(tmp_path / "own.zip").sha256 == read(own).sha256 == load("own").sha256


def test_cases_that_students_can_read_are_named(own: Path, tmp_path: Path) -> None:
    assert shown_cases(read(own)) == []
    folder = tmp_path / "sums"
    (folder / "cases" / "one").mkdir(parents=True)
    (folder / "cases" / "one" / "expected.txt").write_text("3")
    (folder / "student_template").mkdir()
    (folder / "assignment.toml").write_text(
        'id = "sums"\ntitle = "Sums"\n[[problems]]\nid = "sums"\ntitle = "Sums"\ncorrectness = 2.0\n'
        '[problems.program]\nfiles = ["sums.cu"]\n'
    )
    assert shown_cases(read(folder)) == [("sums", "cases")]


@pytest.mark.usefixtures("own")
def test_what_it_extends_comes_along_unless_students_have_it(tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "assignment.toml").write_text('id = "part_two"\ntitle = "Part two"\nextends = "../own"\n')
    pack(read(second), tmp_path / "second.zip")
    unpacked = unpack(tmp_path / "second.zip")
    assert (unpacked.id, unpacked.sha256) == ("part_two", read(second).sha256)
    assert unpacked.problems.keys() == {"half_scale", "int_add"}
    (second / "assignment.toml").write_text('id = "part_two"\ntitle = "Part two"\nextends = "rmsnorm"\n')
    pack(read(second), tmp_path / "second.zip")
    with zipfile.ZipFile(tmp_path / "second.zip") as packed:
        assert packed.namelist() == ["part_two/assignment.toml"]


def test_students_begin_with_it_and_a_later_version_replaces_it(own: Path, tmp_path: Path) -> None:
    package, homework = tmp_path / "own.zip", tmp_path / "hw"
    assert commands.main(["assignment", "pack", str(own), "--out", str(package)], standalone_mode=False) == 0
    assert commands.main(["new", str(homework), "--assignment", str(package)], standalone_mode=False) == 0
    named = marker.named(homework)
    assert named is not None
    assert (named.id, version(named)) == ("own", version(read(own)))
    (own / "problems" / "sizes.py").write_text("SIZES = (1, 127)\n")
    pack(read(own), package)
    assert version(unpack(package)) == version(load("own")) != version(named)


def test_a_version_that_cannot_be_kept_leaves_the_earlier_one(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, earlier = tmp_path / "own.zip", read(own).sha256
    pack(read(own), package)
    unpack(package)
    (own / "problems" / "sizes.py").write_text("SIZES = (1, 127)\n")
    pack(read(own), package)
    moved = Path.rename

    def full(path: Path, target: Path) -> Path:
        if (path / "own" / "assignment.toml").exists() and (
            path / "own/problems/sizes.py"
        ).stat().st_size < 20:
            raise OSError(ENOSPC, "No space left on device")
        return moved(path, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", full)
        with pytest.raises(OSError, match="No space left"):
            unpack(package)
    assert load("own").sha256 == earlier
    assert unpack(package).sha256 == read(own).sha256 != earlier
    assert [path.name for path in packages().iterdir()] == ["own"]


@pytest.mark.usefixtures("ptx_only")
def test_the_record_tells_that_a_folder_was_made_for_another_version(own: Path, tmp_path: Path) -> None:
    homework = tmp_path / "hw"
    homework.mkdir()
    (homework / "int_add.cu").write_text(RIGHT["int_add.cu"])
    marker.write(homework, read(own))
    (own / "problems" / "sizes.py").write_text("SIZES = (1,)\n")
    packed = Path(make_archive(str(tmp_path / "handed_in"), "zip", homework))
    record = grade(
        GradingRequest(packed, read(own), ("int_add",), GradingOptions("sim", "process", "device"), 1)
    )
    assert any("made for another version of own" in note for note in record.submission.notes)
    marker.write(homework, read(own))
    record = grade(
        GradingRequest(homework, read(own), ("int_add",), GradingOptions("sim", "process", "device"), 1)
    )
    assert not any("another version" in note for note in record.submission.notes)


def test_what_cannot_be_packed_or_unpacked_is_told(own: Path, tmp_path: Path) -> None:
    with pytest.raises(AssignmentError, match="students have it already"):
        pack(load("rmsnorm"), tmp_path / "rmsnorm.zip")
    copytree(own / "student_template", tmp_path / "elsewhere")
    rules = own / "assignment.toml"
    rules.write_text(rules.read_text().replace('id = "own"', 'id = "own"\ntemplate = "../elsewhere"', 1))
    (tmp_path / "elsewhere" / "int_add.cu").write_text("")
    with pytest.raises(AssignmentError, match="lie outside of it"):
        pack(read(own), tmp_path / "own.zip")
    assert not (tmp_path / "own.zip").exists()
    (tmp_path / "no.zip").write_text("no archive")
    with pytest.raises(FaultError, match="no package of an assignment"):
        commands.main(
            ["new", str(tmp_path / "x"), "--assignment", str(tmp_path / "no.zip")], standalone_mode=False
        )
