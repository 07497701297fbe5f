"""A check goes on where it was interrupted, and from nothing else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from soundness.examples import example

from grader.assignments.rules import AssignmentError
from grader.soundness.check import check
from grader.soundness.kept import Kept, identity

if TYPE_CHECKING:
    from pathlib import Path


def test_rows_are_looked_at_once_for_the_same_files(tmp_path: Path) -> None:
    path, asked = tmp_path / "kept.json", []

    def looked() -> tuple[bool | None, str]:
        asked.append("asked")
        return True, "10 fail"

    for same in (True, True, False):
        kept = Kept(path, "files" if same else "other files")
        assert kept.row("mutants of a", looked) == (True, "10 fail")
    assert len(asked) == 2


def test_the_identity_follows_every_file_of_the_assignment(tmp_path: Path) -> None:
    own = example(tmp_path / "own")
    before = identity(own, "sim", "process")
    assert before == identity(own, "sim", "process") != identity(own, "gpu", "process")
    kernel = next((own.folder / "reference").glob("*.cu"))
    kernel.write_text(kernel.read_text() + "\n")
    assert before != identity(own, "sim", "process")


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_another_file_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(AssignmentError, match=r"a\.json was not written by a check\. Name another file"):
        Kept(tmp_path / "a.json", "files")


def test_an_interrupted_check_goes_on(tmp_path: Path) -> None:
    own, path = example(tmp_path / "own"), tmp_path / "kept.json"
    texts: list[str] = []

    def rows(*, until: str = "") -> list[str]:
        titles = []
        for row in check(
            own, ["vector_add"], seeds=1, device="sim", sandbox="process", progress=texts.append, path=path
        ):
            titles.append(row.title)
            if row.title == until:
                return titles
        return titles

    rows(until="reference: vector_add")
    assert len(json.loads(path.read_text())["records"]) == 2
    assert any("case 1 of" in text for text in texts)
    texts.clear()
    assert rows(until="variants of vector_add")[-1] == "variants of vector_add"
    assert len(json.loads(path.read_text())["records"]) == 3
