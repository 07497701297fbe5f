"""The package of an assignment that students get: what is graded, without right answers.

It is a zip with the rules, the problems, the templates and the text for students. References, mutants and
variants stay with the teacher. What is packed has the hash of the assignment itself, so records tell whether
somebody graded with another version.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.assignment import FILE, is_installed, packages, read
from grader.assignments.rules import AssignmentError
from grader.records.file_names import HANDOUTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.assignments.assignment import Assignment

_EPOCH = (1980, 1, 1, 0, 0, 0)  # so that the same files make the same archive
_SHOWN = 12  # digits of a hash


def version(assignment: Assignment) -> str:
    """What tells versions of an assignment apart."""
    return assignment.sha256[:_SHOWN]


def pack(assignment: Assignment, archive: Path) -> None:
    """Write the package of ``assignment`` to ``archive``.

    Raises:
        AssignmentError: something of it lies outside of its folders, and would not be in it.
        OSError: the archive cannot be written, or a file not be read.
    """
    folders = [folder for folder in assignment.folders if not is_installed(read(folder))]
    if not folders:
        raise AssignmentError(f"{assignment.id} comes with the grader: students have it already.")
    root = Path(os.path.commonpath([folder.parent for folder in folders]))
    names = {folder: folder.relative_to(root).as_posix() for folder in folders}
    names[assignment.folder] = (assignment.folder.parent.relative_to(root) / assignment.id).as_posix()
    with tempfile.TemporaryDirectory() as scratch:
        together = Path(scratch, "package.zip")
        with zipfile.ZipFile(together, "w", zipfile.ZIP_DEFLATED) as packed:
            for folder, name in names.items():
                for path in sorted(set(_files(assignment, folder))):
                    member = zipfile.ZipInfo(f"{name}/{path.relative_to(folder).as_posix()}", _EPOCH)
                    member.external_attr = (path.stat().st_mode & 0o777) << 16
                    packed.writestr(member, path.read_bytes(), zipfile.ZIP_DEFLATED)
        with zipfile.ZipFile(together) as packed:
            packed.extractall(scratch)
        if read(Path(scratch, names[assignment.folder])).sha256 != assignment.sha256:
            raise AssignmentError(
                f"{assignment.folder} cannot be packed: its problems or its template lie outside of it. Copy "
                "them into it."
            )
        shutil.copyfile(together, archive)


def shown_cases(assignment: Assignment) -> list[tuple[str, str]]:
    """Problems whose cases are files of the package, with their expected output; and the folders of these."""
    tables = [(entry.id, entry.program) for entry in assignment.rules.problems]
    return [
        (problem, folder)
        for problem, table in tables
        if table is not None
        for folder in (table.cases, table.timed)
        if folder and any((parent / folder).is_dir() for parent in assignment.folders)
    ]


def _files(assignment: Assignment, folder: Path) -> Iterator[Path]:
    """What students get of one of the folders of ``assignment``."""
    languages = assignment.rules.every_language
    parts = [folder / FILE, folder / "problems", *(folder / name for name in HANDOUTS)]
    parts += [assignment.template, *map(assignment.template_in, languages)]
    for entry in assignment.rules.problems:
        if (table := entry.program) is not None:
            named = (table.cases, table.timed, table.project, table.checker, *table.given)
            parts += [folder / name for name in named if name]
    for part in parts:
        if part.is_relative_to(folder):
            for path in (part, *part.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    yield path


def unpack(archive: Path) -> Assignment:
    """The assignment in a package, which is kept where its id is known, in place of an earlier version.

    Raises:
        AssignmentError: it is no package.
        OSError: it cannot be kept.
    """
    store = packages()
    store.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=store, prefix=".") as scratch:
        new, old = Path(scratch, "new"), Path(scratch, "old")
        try:
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(new)
        except (zipfile.BadZipFile, NotImplementedError) as error:
            raise AssignmentError(f"{archive} is no package of an assignment: {error}.") from error
        folders = [path.parent for path in new.glob(f"*/{FILE}")]
        extended = {base for folder in folders for base in read(folder).bases}
        outermost = [folder for folder in folders if folder.resolve() not in extended]
        if len(outermost) != 1:
            raise AssignmentError(
                f"{archive} holds no assignment, or several: make it by grader assignment pack."
            )
        name = outermost[0].name
        target = store / name
        if target.exists():
            target.rename(old)
        try:
            new.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    return read(target / name)
