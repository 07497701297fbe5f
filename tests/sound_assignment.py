"""Checks an assignment of the tests as its author would."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.assignments.assignment import read
from grader.soundness.check import check

if TYPE_CHECKING:
    from pathlib import Path


def assert_sound(folder: Path, *kinds: str) -> None:
    """Nothing is unsound, and rows of the template, reference, variants, mutants and ``kinds`` are sound."""
    assignment = read(folder)
    rows = list(check(assignment, list(assignment.problems), seeds=1, device="sim"))
    assert [row for row in rows if row.sound is False] == []
    sound = {row.title for row in rows if row.sound}
    for name in assignment.problems:
        asked = ("template:", "reference:", "variants of", "mutants of", *kinds)
        assert {f"{kind} {name}" for kind in asked} <= sound
