"""Collects the files of a submission, a folder or a zip, into a private copy that nothing else writes to.

What is wrong with a submission is a ``SubmissionError`` (the score is 0 and says why) or, for a file that is
not there, a line in ``problems``; a path that does not exist is a ``UsageError``, the caller's mistake.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

_MOST_ENTRIES = 2_000
_MOST_FILE_BYTES = 4 << 20
_MOST_TOTAL_BYTES = 64 << 20
_MOST_RATIO = 200  # of a member's size to what it takes in the archive; source code reaches about 10
_RATIO_FROM_BYTES = 1 << 20  # below this a high ratio does no harm
_TRAVELLERS = frozenset({".cu", ".cuh", ".h", ".hpp", ".inl", ".inc"})
SOURCES = _TRAVELLERS | {".py"}
CLUTTER = frozenset({"__MACOSX", "__pycache__"})
_ENCRYPTED = 0x1


class SubmissionError(Exception):
    """The submission cannot be graded: score 0, with this reason."""


class UsageError(Exception):
    """There is no such submission."""


@dataclass(frozen=True)
class Submission:
    """What was handed in. As a context manager it removes its private copy at the end.

    Attributes:
        name: the folder's or archive's name.
        sha256: the hash of all collected files with their names.
        files: the wanted files that are there, by name, in the private copy.
        notes: what was understood in another way than asked, for the header ("taken from src/").
        problems: why a wanted file is missing, by its name.
        folder: the private copy: the wanted files and the headers and sources that lay beside them.
    """

    name: str
    sha256: str
    files: Mapping[str, Path]
    notes: tuple[str, ...]
    problems: Mapping[str, str]
    folder: Path
    _copy: tempfile.TemporaryDirectory[str] = field(repr=False, compare=False)

    def contents(self) -> dict[str, bytes]:
        """Every collected file by name: what the compiler may see."""
        return {path.name: path.read_bytes() for path in sorted(self.folder.iterdir())}

    def close(self) -> None:
        """Remove the private copy."""
        self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def collect(path: Path, wanted: Iterable[str]) -> Submission:
    """Collect the ``wanted`` files of the submission at ``path``, and the headers beside them.

    They may lie at the top, in ``src/``, or one folder deeper (as a zip of a folder has it).

    Raises:
        SubmissionError: it is empty, damaged, encrypted, escaping, too big or unreadable.
        UsageError: ``path`` does not exist.
        OSError: the temporary folder cannot be written to, a fault of the machine.
    """
    names = list(wanted)
    try:
        path.stat()
    except PermissionError as error:
        raise SubmissionError(f"cannot read {path}: {error.strerror}") from error
    except OSError as error:
        hint = _nearest_path(path)
        raise UsageError(f"{path} does not exist. Give a folder or a .zip file.{hint}") from error
    if path.is_dir():
        found = _read_folder(path)
    elif path.suffix.lower() == ".zip" or zipfile.is_zipfile(path):
        found = _read_zip(path)
    else:
        raise SubmissionError(f"{path.name} is neither a folder nor a zip archive. Hand in one of the two.")
    if not found:
        raise SubmissionError(f"{path.name} holds no source file. Expected: {', '.join(names)}.")
    chosen, notes = _choose(found, names)
    problems = {name: _missing(name, found) for name in names if name not in chosen}
    copied = _with_travellers(found, chosen)
    copy = tempfile.TemporaryDirectory(prefix="grader-submission-")
    folder = Path(copy.name)
    digest = hashlib.sha256()
    for name in sorted(copied):
        content = copied[name]
        (folder / name).write_bytes(content)
        digest.update(
            f"{len(name.encode())}:{name}{len(content)}:".encode(errors="surrogateescape") + content
        )
    files = {name: folder / name for name in chosen}
    title = path.resolve().name.removesuffix(".zip") or str(path.resolve())
    return Submission(title, digest.hexdigest(), files, tuple(notes), problems, folder, copy)


def _nearest_path(path: Path) -> str:
    try:
        close = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)  # noqa: PTH208
    except OSError:
        return ""
    return f" Did you mean {path.parent / close[0]}?" if close else ""


def _interesting(place: PurePosixPath) -> bool:
    return not any(part in CLUTTER or part.startswith(".") for part in place.parts)


def _read_folder(root: Path) -> dict[PurePosixPath, bytes]:
    """The files of a folder down to two levels, by relative path; no link is followed."""
    found: dict[PurePosixPath, bytes] = {}
    total = 0
    for path in _walk(root):
        place = PurePosixPath(path.relative_to(root).as_posix())
        if len(found) >= _MOST_ENTRIES:
            raise SubmissionError(f"{root.name} holds more than {_MOST_ENTRIES} files.")
        content = _read_file(path, place)
        total += len(content)
        if total > _MOST_TOTAL_BYTES:
            raise SubmissionError(
                f"{root.name} holds more than {_MOST_TOTAL_BYTES >> 20} MiB of source files."
            )
        found[place] = content
    return found


def _walk(root: Path) -> Iterator[Path]:
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            raise SubmissionError(f"cannot read {folder}: {error.strerror}") from error
        for entry in entries:
            path = folder / entry.name
            place = PurePosixPath(path.relative_to(root).as_posix())
            if not _interesting(place):
                continue
            if entry.is_dir(follow_symlinks=False):
                if len(place.parts) <= 2:
                    pending.append(path)
            elif entry.is_symlink():
                if place.suffix in SOURCES:
                    raise SubmissionError(f"{place} is a link. Hand in the file itself.")
            elif entry.is_file(follow_symlinks=False) and place.suffix in SOURCES:
                yield path


def _read_file(path: Path, place: PurePosixPath) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise SubmissionError(f"{place} is not a plain file.")
        with open(fd, "rb") as file:  # noqa: PTH123
            content = file.read(_MOST_FILE_BYTES + 1)
    except OSError as error:
        raise SubmissionError(f"cannot read {place}: {error.strerror}") from error
    if len(content) > _MOST_FILE_BYTES:
        raise SubmissionError(f"{place} is larger than {_MOST_FILE_BYTES >> 20} MiB.")
    return content


def _read_zip(path: Path) -> dict[PurePosixPath, bytes]:
    """The files of an archive down to two levels; every member is checked before any is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            _check_members(path.name, members)
            found: dict[PurePosixPath, bytes] = {}
            for member in members:
                place = PurePosixPath(member.filename)
                if member.is_dir() or not _interesting(place) or place.suffix not in SOURCES:
                    continue
                if len(place.parts) > 3:
                    continue
                if place in found:
                    raise SubmissionError(f"{path.name} holds {place} twice.")
                with archive.open(member) as file:
                    content = file.read(_MOST_FILE_BYTES + 1)
                if len(content) > _MOST_FILE_BYTES:
                    raise SubmissionError(
                        f"{place} in {path.name} is larger than {_MOST_FILE_BYTES >> 20} MiB."
                    )
                found[place] = content
            return found
    except OSError as error:
        raise SubmissionError(f"cannot read {path.name}: {error.strerror or error}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError) as error:
        raise SubmissionError(
            f"{path.name} is not a zip archive or is damaged: {error}. Zip it again."
        ) from error


def _check_members(archive: str, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > _MOST_ENTRIES:
        raise SubmissionError(f"{archive} holds more than {_MOST_ENTRIES} files.")
    if sum(member.file_size for member in members) > _MOST_TOTAL_BYTES:
        raise SubmissionError(f"{archive} would unpack to more than {_MOST_TOTAL_BYTES >> 20} MiB.")
    for member in members:
        place = PurePosixPath(member.filename.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts or (place.parts and place.parts[0].endswith(":")):
            raise SubmissionError(f"{archive} holds {member.filename}, which would escape its folder.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise SubmissionError(f"{archive} holds a link, {member.filename}. Put the file itself in.")
        if member.flag_bits & _ENCRYPTED:
            raise SubmissionError(f"{archive} is encrypted. Hand it in without a password.")
        packed = max(1, member.compress_size)
        if member.file_size > _RATIO_FROM_BYTES and member.file_size / packed > _MOST_RATIO:
            raise SubmissionError(
                f"{member.filename} in {archive} unpacks to {member.file_size // packed} times."
            )


def _choose(
    found: Mapping[PurePosixPath, bytes], names: list[str]
) -> tuple[dict[str, PurePosixPath], list[str]]:
    """Where each wanted file is taken from: the shallowest place, ``src`` first among equals."""
    chosen: dict[str, PurePosixPath] = {}
    notes: list[str] = []
    for name in names:
        places = sorted(
            (place for place in found if place.name == name),
            key=lambda place: (len(place.parts), place.parts[:-1] != ("src",), str(place)),
        )
        if not places:
            continue
        chosen[name] = places[0]
        if len(places[0].parts) > 1:
            notes.append(f"{name} was taken from {places[0].parent}/")
        if len(places) > 1:
            others = ", ".join(str(place) for place in places[1:])
            notes.append(f"{name} is there more than once: took {places[0]}, not {others}")
    return chosen, notes


def _missing(name: str, found: Mapping[PurePosixPath, bytes]) -> str:
    """Why a wanted file is not there, with the file that was probably meant."""
    suffix = PurePosixPath(name).suffix
    by_name = {place.name.lower(): place for place in reversed(list(found)) if place.suffix == suffix}
    close = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.5)
    if close:
        return f"{name} is missing. Found {by_name[close[0]]}: rename it to {name}."
    return f"{name} is missing."


def _with_travellers(
    found: Mapping[PurePosixPath, bytes], chosen: Mapping[str, PurePosixPath]
) -> dict[str, bytes]:
    """The chosen files, and the headers and sources in the folders that they came from."""
    folders = {place.parent for place in chosen.values()}
    beside = {p.name: found[p] for p in found if p.parent in folders and p.suffix in _TRAVELLERS}
    return beside | {name: found[place] for name, place in chosen.items()}
