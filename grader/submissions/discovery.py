"""What in a folder is a submission: sub-folders, archives, and loose files as Canvas names its downloads.

Canvas puts every file of every student into one folder, as ``<name>[_LATE]_<user>_<attachment>_<file>``, and
adds ``-1``, ``-2``, ... to the name of a file that is handed in again.
"""

from __future__ import annotations

import re
import shutil
import unicodedata
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from grader.submissions.submission import SOURCES
from grader.submissions.trees import CLUTTER, KINDS, is_archive, is_other_archive, stem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

LATE = "handed in late"
RESERVED = (
    "gradebook.csv",
    "index.html",
    "points.csv",
    "teams.csv",
)  # what stands beside the results of the submissions
_ANONYMOUS = re.compile(r"(?P<late>LATE_)?(?P<name>anon)_(?P<user>[^_]+)_(?P<attachment>\d+)_(?P<file>.+)")
_NAMED = re.compile(r"(?P<name>\w+?)_(?P<late>LATE_)?(?P<user>\d+)_(?P<attachment>\d+)_(?P<file>.+)")
_NO_FILE = re.compile(
    r"(?P<name>\w+?)_(?P<late>LATE_)?(?P<user>\d+)_(?P<attachment>)(?P<file>(?:text|link)\.html)"
)
_AGAIN = re.compile(r"-\d+(?=\.[^.]+$)")


@dataclass(frozen=True)
class Attachment:
    """One file of a Canvas download.

    Attributes:
        student: name and user id, ``doejane_1001`` or ``anon_1001``.
        late: whether Canvas says so.
        number: rises with the time of handing in; 0 for a text or a link that was handed in without a file.
        file: the name that the student gave, except for ``-1``, ``-2``, ... of files handed in again.
        path: where it lies.
    """

    student: str
    late: bool
    number: int
    file: str
    path: Path


@dataclass(frozen=True)
class Entry:
    """One submission.

    Attributes:
        name: what it is called: printable, the name of a folder, unlike that of any other.
        path: the folder or archive; None if it consists of loose ``files``.
        files: where each loose file lies, by the name that it is graded under.
        notes: what was understood in another way than it was handed in.
    """

    name: str
    path: Path | None = None
    files: Mapping[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def lay_out(self, folder: Path) -> Path:
        """The path to grade: the submission's own, or its loose files put together in ``folder``.

        Raises:
            OSError: a file cannot be read or the folder cannot be written to.
        """
        if self.path is not None:
            return self.path
        together = folder / self.name
        together.mkdir()
        for name, path in self.files.items():
            shutil.copyfile(path, together / name, follow_symlinks=False)
        return together


@dataclass(frozen=True)
class Discovery:
    """The submissions that a folder holds, and the files that are none.

    Attributes:
        entries: the submissions, in the order of their names.
        ignored: files that are none.
        skipped: why something that was probably meant as one is none, a sentence each.
    """

    entries: tuple[Entry, ...]
    ignored: tuple[str, ...]
    skipped: tuple[str, ...] = ()


def discover(folder: Path, names: Collection[str]) -> Discovery:
    """The submissions in ``folder``, of which the files called ``names`` are graded.

    Raises:
        OSError: the folder cannot be read.
    """
    folders: list[Entry] = []
    archives: list[Path] = []
    students: dict[str, list[Attachment]] = defaultdict(list)
    ignored: list[str] = []
    skipped: list[str] = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in CLUTTER:
            continue
        if path.is_dir():
            folders.append(Entry(path.name, path))
            continue
        if is_other_archive(path.name):
            skipped.append(
                f"{_printable(path.name)} is an archive of another kind than {KINDS}: unpack it into a folder"
            )
        if path.exists() and not path.is_file():  # to open a pipe is to wait for whoever writes to it
            skipped.append(f"{_printable(path.name)} is neither a file nor a folder")
        elif attachment := parse(path):
            students[attachment.student].append(attachment)
        elif is_archive(path.name):
            archives.append(path)
        elif path.suffix.lower() in SOURCES:
            skipped.append(
                f"{_printable(path.name)} is a single file: put it into a folder, under the name that the "
                "assignment gives it"
            )
        elif not is_other_archive(path.name):
            ignored.append(_printable(path.name))
    loose = [_put_together(student, students[student], names) for student in sorted(students)]
    taken = {entry.name for entry in (*folders, *loose)}
    packed = [Entry(path.name if stem(path.name) in taken else stem(path.name), path) for path in archives]
    entries = sorted(_distinct([*folders, *loose, *packed]), key=lambda entry: entry.name)
    return Discovery(tuple(entries), tuple(ignored), tuple(skipped))


def parse(path: Path) -> Attachment | None:
    """The attachment that the name of a file describes, if Canvas named it; else None."""
    name = unicodedata.normalize("NFC", path.name)  # a Mac unpacks umlauts as two characters
    for pattern in (_ANONYMOUS, _NAMED, _NO_FILE):
        if match := pattern.fullmatch(name):
            student = f"{match['name']}_{match['user']}"
            number = int(match["attachment"] or 0)
            return Attachment(student, bool(match["late"]), number, match["file"], path)
    return None


def _put_together(student: str, attachments: list[Attachment], names: Collection[str]) -> Entry:
    """The submission that one student's files make; of files for the same name the newest is taken."""
    notes = [LATE] if any(attachment.late for attachment in attachments) else []
    ordered = sorted(attachments, key=lambda attachment: attachment.number, reverse=True)
    if archives := [attachment for attachment in ordered if is_other_archive(attachment.file)]:
        notes.append(f"left out {_listed(archives)}: of archives, {KINDS} are read")
    handed = [attachment for attachment in ordered if is_archive(attachment.file) or _is_source(attachment)]
    if handed and not _is_source(handed[0]):
        if older := handed[1:]:
            notes.append(f"took {handed[0].file}, the newest, and left out {_listed(older)}")
        return Entry(student, handed[0].path, notes=tuple(notes))
    if older := [attachment for attachment in handed if not _is_source(attachment)]:
        notes.append(f"took the files that are newer than {_listed(older)}")
    files: dict[str, Path] = {}
    by_target: dict[str, list[Attachment]] = defaultdict(list)
    for attachment in filter(_is_source, handed):
        target = _AGAIN.sub("", attachment.file)
        if target not in names:
            # The number may be the student's own: tile-16.cuh.
            files.setdefault(attachment.file, attachment.path)
        by_target[target].append(attachment)
    for target, candidates in by_target.items():
        if target in files:
            continue
        files[target] = candidates[0].path
        if older := candidates[1:]:
            notes.append(
                f"{target} was handed in {len(candidates)} times: "
                f"took {candidates[0].file}, the newest, not {_listed(older)}"
            )
    return Entry(student, None, files, tuple(notes))


def _is_source(attachment: Attachment) -> bool:
    return PurePath(attachment.file).suffix.lower() in SOURCES


def _listed(attachments: Iterable[Attachment]) -> str:
    return ", ".join(attachment.file for attachment in attachments)


def _printable(name: str) -> str:
    return "".join(character if character.isprintable() else "_" for character in name)


def _distinct(entries: Iterable[Entry]) -> Iterable[Entry]:
    """Give the entries printable and unique names."""
    taken = set(RESERVED)
    for entry in entries:
        printable = _printable(entry.name)
        name, count = printable, 1
        while name in taken:
            count += 1
            name = f"{printable}-{count}"
        taken.add(name)
        yield Entry(name, entry.path, entry.files, entry.notes)
