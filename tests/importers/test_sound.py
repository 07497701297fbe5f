"""Imported problems in ``grader assignment check``, where an answer to one of each form is the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from importers import forms

from grader.assignments.assignment import load
from grader.importers.folders import imported
from grader.soundness import check

if TYPE_CHECKING:
    from pathlib import Path

PROBLEMS = {"GPU MODE": "histogram", "LeetGPU": "counts", "KernelBench": "linear"}
"""A problem of each form: two that keep the few tests of the original, and a formula of one size."""


def unsound(form: str, kind: str, folder: Path) -> list[str]:
    """Which checks fail with a ``right`` or a ``wrong`` answer in C++ as the reference."""
    asked = next(asked for asked in forms.FORMS[form].problems if asked.id == PROBLEMS[form])
    imported(forms.FORMS[form].write(folder, asked.original), folder / "course")
    reference = folder / "course" / "reference_cupy"
    reference.mkdir()
    (reference / "submission.py").write_text(forms.text(asked, "cupy", kind))
    assignment = load(str(folder / "course"))
    rows = check.check(assignment, [asked.id], seeds=1, device="sim", sandbox="process")
    return [row.title for row in rows if row.sound is False]


@pytest.mark.parametrize("form", ["GPU MODE", "LeetGPU", pytest.param("KernelBench", marks=pytest.mark.long)])
def test_a_problem_of_each_form_is_sound(form: str, tmp_path: Path) -> None:
    assert unsound(form, "right", tmp_path) == []


def test_a_problem_with_a_wrong_reference_is_not(tmp_path: Path) -> None:
    assert unsound("GPU MODE", "wrong", tmp_path) == ["cupy reference: histogram"]
