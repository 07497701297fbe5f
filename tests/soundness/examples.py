"""Copies of the grader's example of an assignment, with something changed."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from grader.assignments.assignment import EXAMPLE, read

if TYPE_CHECKING:
    from pathlib import Path

    from grader.assignments.assignment import Assignment


def example(folder: Path, *changes: tuple[str, str, str]) -> Assignment:
    """A copy in a new folder; each change is a file, what stands there once, and what replaces it.

    The modules of a folder are loaded once, so every copy has a folder of its own.
    """
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file, old, new in changes:
        text = (folder / file).read_text()
        assert text.count(old) == 1, (file, old)
        (folder / file).write_text(text.replace(old, new))
    return read(folder)
