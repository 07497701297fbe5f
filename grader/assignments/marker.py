"""The file in a student's folder that names the assignment which the folder is for.

It names an assignment by its id and never by a folder: what was handed in must not decide which code the
judge loads. The version that was current when the folder was made stands beside it, for a note.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

from grader.assignments.assignment import ENVIRONMENT, available, load
from grader.assignments.packing import version
from grader.assignments.rules import AssignmentError, nearest
from grader.records.file_names import MARKER as FILE

if TYPE_CHECKING:
    from pathlib import Path

    from grader.assignments.assignment import Assignment

_MOST_BYTES = 4096


def write(folder: Path, assignment: Assignment) -> None:
    """Name ``assignment`` in ``folder``.

    Raises:
        OSError: the file cannot be written.
    """
    text = f'assignment = "{assignment.id}"\nversion = "{version(assignment)}"\n'
    (folder / FILE).write_text(text, encoding="utf-8")


def named(folder: Path) -> Assignment | None:
    """The assignment that the file in ``folder`` names; None if there is no such file.

    Raises:
        AssignmentError: the file is a link or no such TOML, or names no installed assignment.
    """
    path = folder / FILE
    if path.is_symlink():
        raise AssignmentError(f"{path} is a link. Remove it, or name the assignment by --assignment.")
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            entries = tomllib.loads(file.read(_MOST_BYTES).decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssignmentError(f"{path}: not TOML: {error}") from error
    except OSError as error:
        raise AssignmentError(f"{path}: cannot be read: {error.strerror}") from error
    name = entries.get("assignment")
    if not {"assignment"} <= entries.keys() <= {"assignment", "version"} or not isinstance(name, str):
        raise AssignmentError(f'{path}: it has to hold one line, such as assignment = "{available()[0]}".')
    if name not in available():
        raise AssignmentError(
            f"{path}: {name!r} is no installed assignment.{nearest(name, list(available()))} "
            f"One in a folder is named by --assignment FOLDER, or by its id once {ENVIRONMENT} names the "
            "folder that it lies in."
        )
    return load(name)
