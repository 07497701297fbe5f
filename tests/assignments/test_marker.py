from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from grader.assignments.assignment import load
from grader.assignments.marker import FILE, named, write
from grader.assignments.rules import AssignmentError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_names_the_assignment_that_it_was_made_for(tmp_path: Path) -> None:
    assert named(tmp_path) is None
    write(tmp_path, load("handout"))
    assert (tmp_path / FILE).read_text().startswith('assignment = "handout"\nversion = "')
    found = named(tmp_path)
    assert found is not None
    assert found.id == "handout"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('assignment = "handouts"', "'handouts' is no installed assignment. Did you mean 'handout'"),
        ('assignment = "."', "'.' is no installed assignment"),
        ('assignment = "/tmp/own"', "'/tmp/own' is no installed assignment"),
        ("assignment = 3", "it has to hold one line"),
        ('assignment = "handout"\nlimits = 3', "it has to hold one line"),
        ("assignment", "not TOML"),
    ],
)
def test_a_submission_names_installed_assignments_only(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(AssignmentError, match=message):
        named(tmp_path)


def test_a_folder_with_code_that_a_submission_names_is_not_loaded(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "problems").mkdir(parents=True)
    (own / "assignment.toml").write_text('id = "own"')
    (tmp_path / FILE).write_text(f'assignment = "{own}"')
    with pytest.raises(AssignmentError, match="is named by --assignment FOLDER, or"):
        named(tmp_path)


def test_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text('assignment = "handout"')
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere.toml")
    with pytest.raises(AssignmentError, match="is a link"):
        named(tmp_path)
