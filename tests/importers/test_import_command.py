"""``grader assignment import``, as a teacher types it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forked import run
from importers import originals

from grader.languages.triton import source

if TYPE_CHECKING:
    from pathlib import Path


def test_a_problem_becomes_an_assignment_whose_template_earns_nothing(tmp_path: Path) -> None:
    folder, course = originals.write(tmp_path, "vector_sum"), tmp_path / "course"
    done = run("assignment", "import", folder, "--out", course)
    assert done.returncode == 0, done.stderr
    assert "vector_sum: bounds are derived from its reference, and cases have size 127 to 1024" in done.stdout
    listed = run("problems", "--assignment", course)
    assert listed.returncode == 0, listed.stderr
    assert "vector sum" in listed.stdout
    begun = run("new", tmp_path / "homework", "--assignment", course)
    assert begun.returncode == 0, begun.stderr
    assert sorted(path.name for path in (tmp_path / "homework").iterdir() if path.name[0] != ".") == [
        "HANDOUT.md",
        "grader.toml",
        "submission.py",
    ]
    for language in ("triton", "load_inline", "cupy", "nvrtc"):
        begun = run("new", tmp_path / language, "--assignment", course, "--language", language)
        assert begun.returncode == 0, begun.stderr
        assert (
            source.language((tmp_path / language / "submission.py").read_bytes(), "submission.py") == language
        )
    text = (tmp_path / "homework" / "HANDOUT.md").read_text()
    assert "`left` is a tensor of float16 of shape [size]." in text
    assert "It is called with size from 127 to 1024." in text


def test_what_is_refused_shows_in_the_exit_code(tmp_path: Path) -> None:
    originals.write(tmp_path / "set", "histogram")
    originals.write(tmp_path / "set", "sort", ('lang: "py"', 'lang: "cu"'))
    done = run("assignment", "import", tmp_path / "set", "--out", tmp_path / "course")
    assert done.returncode == 1
    assert f"{tmp_path / 'set' / 'sort'}: not imported: " in done.stdout
    assert "histogram: judged by its 2 tests with fresh seeds" in done.stdout


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    folder = originals.write(tmp_path, "histogram")
    done = run("assignment", "import", folder, "--out", tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path} is there already. Name a folder that is not." in done.stderr
