"""What a check has worked out so far, in a file, so that it goes on there after an interrupt.

Layer: imports the record, and assignments for their identity.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from grader.assignments.rules import AssignmentError
from grader.records.record import Record, RecordError, write_text
from grader.run.identity import judging_sha256

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from grader.assignments.assignment import Assignment

Figures = tuple[bool | None, str]
"""Whether what was checked is as it must be, and the text about it."""


def identity(assignment: Assignment, device: str, sandbox: str) -> str:
    """What the figures of a check depend on: grader, options, and all files of the assignment."""
    return ":".join((judging_sha256(), device, sandbox, *map(_sha256, assignment.folders)))


class Kept:
    """Records and rows by what they are of; nothing is kept without a file."""

    def __init__(self, path: Path | None = None, of: str = "") -> None:
        """Read what ``path`` holds, as far as its ``identity`` is the same.

        Raises:
            AssignmentError: it holds something else than an earlier check.
        """
        self._path, self._of = path, of
        self._records: dict[str, Any] = {}
        self._rows: dict[str, Any] = {}
        if path is None or not path.exists():
            return
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
            if before["of"] == of:
                self._records, self._rows = before["records"], before["rows"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AssignmentError(f"{path} was not written by a check. Name another file.") from error

    def record(self, folder: Path, request: str, graded: Callable[[], Record]) -> Record:
        """The record of the files in ``folder``, graded as ``request`` says."""
        key = f"{_sha256(folder)} {request}"
        if key not in self._records:
            record = graded()
            self._keep(self._records, key, record.model_dump(mode="json", by_alias=True))
            return record
        return Record.model_validate(self._records[key])

    def row(self, title: str, looked: Callable[[], Figures]) -> Figures:
        """The figures of the row of that title."""
        if title not in self._rows:
            figures = looked()
            self._keep(self._rows, title, list(figures))
            return figures
        sound, text = self._rows[title]
        return sound, text

    def _keep(self, kind: dict[str, Any], key: str, content: object) -> None:
        if self._path is None:
            return
        kind[key] = content
        everything = {"of": self._of, "records": self._records, "rows": self._rows}
        try:
            write_text(json.dumps(everything) + "\n", self._path)
        except RecordError as error:
            raise AssignmentError(str(error)) from error


def _sha256(folder: Path) -> str:
    """The hash of all files in a folder, with their names."""
    digest = hashlib.sha256()
    for path in sorted(
        path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
