"""The files of a submission, by name and content: of a folder, of an archive, of archives in an archive.

Names are listed first. What is read is checked before it is unpacked, and nothing is written by a name that
stands in an archive: a tar is unpacked into one nameless file, as it can be read from its begin alone.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Protocol, cast

from grader.processes import leftovers
from grader.records.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_FILE_BYTES = 4 << 20
MOST_TOTAL_BYTES = 64 << 20
_MOST_ENTRIES = 200_000  # files and folders that are listed; a homework with a virtual environment has 30,000
_MOST_UNPACKED_BYTES = 1 << 30  # of an archive that cannot be read file by file
_MOST_DEPTH = 12
_MOST_RATIO = 200  # of a member's size to what it takes in the archive; source code reaches about 10
_RATIO_FROM_BYTES = 1 << 20  # below this a high ratio does no harm
_BLOCK = 1 << 20
CLUTTER = frozenset({"__MACOSX", "__pycache__"})
_ARCHIVE = re.compile(r"(?P<stem>.+)\.(?:zip|tar|tar\.(?:gz|bz2|xz)|tgz|tbz2?|txz|7z)", re.IGNORECASE)
_OTHER_ARCHIVE = re.compile(r".+\.(?:tar\.\w+|gz|bz2|xz|zst|rar)", re.IGNORECASE)
KINDS = ".zip, .tar, .tar.gz, .tar.bz2, .tar.xz and .7z"
_SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c"
_COMPRESSED: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file)),
    b"BZh": lambda file: cast("IO[bytes]", bz2.BZ2File(file)),
    b"\xfd7zXZ\0": lambda file: cast("IO[bytes]", lzma.LZMAFile(file)),  # noqa: SIM115 - its reader closes it
}
_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    ValueError,
)
_OF_DAMAGE = {None, errno.EINVAL}  # of an OSError: bzip2 says nothing, and offsets may lie before the file
_ENCRYPTED_FLAG = 0x1
_ENCRYPTED = "{name} is encrypted. Hand it in without a password."


class SubmissionError(Exception):
    """Nobody can say what was handed in, such as of a damaged archive: nothing of it is decided."""


class EmptyError(SubmissionError):
    """There is no source file in it: every problem is missing, which gives 0 points."""


class UnreadableError(MachineError):
    """There is no such submission, or it cannot be read here: no student's fault."""


def printable(name: str | PurePosixPath) -> str:
    """A name that may hold bytes that are no UTF-8, as text that can be written anywhere."""
    return str(name).encode(errors="surrogateescape").decode(errors="replace")


def is_archive(name: str) -> bool:
    """Whether a file of this name is probably an archive that can be read."""
    return _ARCHIVE.fullmatch(name) is not None


def is_other_archive(name: str) -> bool:
    """Whether a file of this name is probably an archive that cannot be read."""
    return not is_archive(name) and _OTHER_ARCHIVE.fullmatch(name) is not None


def stem(name: str) -> str:
    """The name of a folder or an archive without the suffixes of the latter."""
    match = _ARCHIVE.fullmatch(name)
    return match["stem"] if match else name


def unreadable(path: Path, error: OSError) -> UnreadableError:
    """The error of a file that may be right and cannot be read here."""
    return UnreadableError(
        f"cannot read {printable(str(path))}: {error.strerror}. Make it readable (chmod -R u+rX, if it is "
        "yours) and grade again."
    )


class Tree(Protocol):
    """The paths of a submission's files from its folder, in order, and a way to read each."""

    paths: list[PurePosixPath]

    def read(self, path: PurePosixPath, most: int = MOST_FILE_BYTES) -> bytes:
        """The content of a file, a byte more than ``most`` if it is longer."""


@contextmanager
def opened(path: Path) -> Iterator[Tree]:
    """The files of the folder or archive at ``path``.

    Raises:
        SubmissionError: it is neither.
        SubmissionError: it is damaged, encrypted, escaping or too big.
        UnreadableError: ``path`` or something of it cannot be read.
    """
    mode = path.stat().st_mode
    if stat.S_ISDIR(mode):
        yield Folder(path)
        return
    if not stat.S_ISREG(mode):
        raise SubmissionError(_neither(path.name))
    with ExitStack() as stack:
        try:
            file = stack.enter_context(path.open("rb"))
        except OSError as error:
            raise unreadable(path, error) from error
        yield _archive(file, path, stack)


@contextmanager
def with_archives(tree: Tree) -> Iterator[Tree]:
    """The files of ``tree``, and those of the archives in it, each as if it were a folder of its name.

    Raises:
        SubmissionError: one of them is damaged, encrypted, escaping or too big.
    """
    with ExitStack() as stack:
        inner: dict[PurePosixPath, Tree] = {}
        remaining = MOST_TOTAL_BYTES
        for path in tree.paths:
            if not is_archive(path.name):
                continue
            content = tree.read(path, remaining)
            remaining -= len(content)
            if remaining < 0:
                raise SubmissionError(f"the archives in it are more than {MOST_TOTAL_BYTES >> 20} MiB.")
            inner[path] = _archive(io.BytesIO(content), Path(path), stack)
        yield _Nested(tree, inner)


class _Nested:
    """A tree with archives that were opened."""

    def __init__(self, tree: Tree, inner: dict[PurePosixPath, Tree]) -> None:
        self._tree, self._inner = tree, inner
        self._from = {path / below: path for path, opened in inner.items() for below in opened.paths}
        if len(self._from) > _MOST_ENTRIES:
            raise SubmissionError(f"the archives in it hold more than {_MOST_ENTRIES:,} files.")
        self.paths = sorted([*(path for path in tree.paths if path not in inner), *self._from])

    def read(self, path: PurePosixPath, most: int = MOST_FILE_BYTES) -> bytes:
        if (archive := self._from.get(path)) is None:
            return self._tree.read(path, most)
        return self._inner[archive].read(path.relative_to(archive), most)


def _archive(file: IO[bytes], path: Path, stack: ExitStack) -> Tree:
    """The archive in ``file``, of the kind that its content says; ``path`` is for messages."""
    name = printable(path.name)
    with _damage(name, path):
        start = file.read(len(_SEVEN_ZIP))
        is_zip = name.lower().endswith(".zip") or zipfile.is_zipfile(file)
        file.seek(0)
        if start == _SEVEN_ZIP:
            return _seven_zip(file, name, stack)
        if is_zip:
            return _Zip(stack.enter_context(zipfile.ZipFile(file)), path, name)
        for magic, decompressed in _COMPRESSED.items():
            if start.startswith(magic):
                file = _unpacked(decompressed(file), name, stack)
        if not tarfile.is_tarfile(file):
            raise SubmissionError(
                f"{name} is not an archive or is damaged. Pack it again."
                if is_archive(name)
                else _neither(name)
            )
        file.seek(0)
        return _Tar(stack.enter_context(tarfile.TarFile(fileobj=file)), path, name)


def _neither(name: str) -> str:
    return f"{printable(name)} is neither a folder nor an archive that can be read: {KINDS}."


def _damaged(name: str, why: Exception | None = None) -> str:
    return f"{name} is not an archive or is damaged{f': {why}' if why else ''}. Pack it again."


def _unpacked(source: IO[bytes], name: str, stack: ExitStack) -> IO[bytes]:
    """All of a compressed file, which would be unpacked from its begin again for each file that is read."""
    target = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - its reader closes it
    while block := source.read(_BLOCK):
        if target.tell() + len(block) > _MOST_UNPACKED_BYTES:
            raise _too_big(name)
        target.write(block)
    target.seek(0)
    return cast("IO[bytes]", target)


def _too_big(name: str) -> SubmissionError:
    size = f"{_MOST_UNPACKED_BYTES >> 30} GiB"
    return SubmissionError(f"{name} unpacks to more than {size}. Hand in the source files alone.")


def _is_listed(path: PurePosixPath) -> bool:
    clutter = any(part in CLUTTER or part.startswith(".") for part in path.parts)
    return bool(path.name) and not clutter and len(path.parts) <= _MOST_DEPTH


def _inside(member: str, archive: str) -> PurePosixPath:
    """The path of a member of an archive, which does not lead out of it."""
    path = PurePosixPath(member.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
        raise SubmissionError(f"{archive} holds {printable(member)}, which would escape its folder.")
    return path


@contextmanager
def _damage(name: str, path: Path) -> Iterator[None]:
    """A context in which errors of reading become those of the archive ``name``, which lies at ``path``."""
    try:
        yield
    except _UNREADABLE as error:
        if isinstance(error, OSError) and error.errno not in _OF_DAMAGE:
            raise unreadable(path, error) from error
        raise SubmissionError(_damaged(name, error)) from error


class Folder:
    """A folder; no link in it is followed."""

    def __init__(self, root: Path) -> None:
        """List what is in it.

        Raises:
            SubmissionError: it holds too many files.
            UnreadableError: something of it cannot be read.
        """
        self._root = root
        self.paths = sorted(self._walk())

    def _walk(self) -> Iterator[PurePosixPath]:
        pending = [PurePosixPath()]
        count = 0
        while pending:
            folder = pending.pop()
            try:
                entries = list(os.scandir(self._root / folder))
            except OSError as error:
                raise unreadable(self._root / folder, error) from error
            count += len(entries)
            if count > _MOST_ENTRIES:
                raise SubmissionError(
                    f"{printable(self._root.name)} holds more than {_MOST_ENTRIES:,} files."
                )
            for entry in entries:
                path = folder / entry.name
                if not _is_listed(PurePosixPath(entry.name)):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if len(path.parts) < _MOST_DEPTH:
                        pending.append(path)
                elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    yield path

    def read(self, path: PurePosixPath, most: int = MOST_FILE_BYTES) -> bytes:
        """The content of a file, a byte more than ``most`` if it is longer.

        Raises:
            SubmissionError: it is a link, or no file.
            UnreadableError: it cannot be read.
        """
        target = self._root / path
        if target.is_symlink():
            raise SubmissionError(f"{printable(path)} is a link. Hand in the file itself.")
        try:
            fd = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                os.close(fd)
                raise SubmissionError(f"{printable(path)} is not a plain file.")
            with open(fd, "rb") as file:  # noqa: PTH123
                return file.read(most + 1)
        except OSError as error:
            raise unreadable(target, error) from error


class _Zip:
    """A zip archive, of which single files are unpacked."""

    def __init__(self, archive: zipfile.ZipFile, path: Path, name: str) -> None:
        self._zip, self._path, self._name = archive, path, name
        self._members: dict[PurePosixPath, list[zipfile.ZipInfo]] = {}
        infos = archive.infolist()
        if len(infos) > _MOST_ENTRIES:
            raise SubmissionError(f"{name} holds more than {_MOST_ENTRIES:,} files.")
        for info in infos:
            inside = _inside(info.filename, name)
            if info.flag_bits & _ENCRYPTED_FLAG:
                raise SubmissionError(_ENCRYPTED.format(name=name))
            if _is_listed(inside) and not info.is_dir():
                self._members.setdefault(inside, []).append(info)
        self.paths = sorted(self._members)

    def read(self, path: PurePosixPath, most: int = MOST_FILE_BYTES) -> bytes:
        info, *duplicates = self._members[path]
        if duplicates:
            raise SubmissionError(f"{self._name} holds {path} twice.")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise SubmissionError(f"{self._name} holds a link, {path}. Put the file itself in.")
        times = info.file_size // max(1, info.compress_size)
        if info.file_size > _RATIO_FROM_BYTES and times > _MOST_RATIO:
            raise SubmissionError(f"{path} in {self._name} unpacks to {times} times.")
        with _damage(self._name, self._path), self._zip.open(info) as file:
            return file.read(most + 1)


class _Tar:
    """A tar that is not compressed, or was unpacked; of several members of a name the last one counts."""

    def __init__(self, archive: tarfile.TarFile, path: Path, name: str) -> None:
        self._tar, self._path, self._name = archive, path, name
        self._members: dict[PurePosixPath, tarfile.TarInfo] = {}
        for count, info in enumerate(archive):
            if count >= _MOST_ENTRIES:
                raise SubmissionError(f"{name} holds more than {_MOST_ENTRIES:,} files.")
            inside = _inside(info.name, name)
            if not info.isdir() and _is_listed(inside):
                self._members[inside] = info
        self.paths = sorted(self._members)

    def read(self, path: PurePosixPath, most: int = MOST_FILE_BYTES) -> bytes:
        info = self._members[path]
        if not info.isreg():
            raise SubmissionError(f"{self._name} holds a link, {printable(path)}. Put the file itself in.")
        with _damage(self._name, self._path), cast("IO[bytes]", self._tar.extractfile(info)) as file:
            return file.read(most + 1)


def _seven_zip(file: IO[bytes], name: str, stack: ExitStack) -> Tree:
    """A 7z archive. Its files are compressed together, so all are unpacked at once."""
    try:
        import py7zr  # noqa: PLC0415 - need not be installed
        from py7zr.exceptions import ArchiveError, PasswordRequired  # noqa: PLC0415
    except ImportError as error:
        raise UnreadableError(
            f"cannot read {name}: py7zr is not installed. Install it (pip install 'kernel-grader[7z]'), or "
            "unpack the archive into a folder, and grade again."
        ) from error
    root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=leftovers.prefix())))
    try:
        with py7zr.SevenZipFile(file, max_extract_size=_MOST_UNPACKED_BYTES) as archive:
            encrypted = archive.needs_password()
            if not encrypted:
                archive.extract(root, targets=list(_to_unpack(archive.list(), name)))
    except PasswordRequired:
        encrypted = True
    except ArchiveError as error:
        raise SubmissionError(_damaged(name, error)) from error
    if encrypted:
        raise SubmissionError(_ENCRYPTED.format(name=name))
    return Folder(root)


class _Member(Protocol):
    filename: str
    uncompressed: int
    is_file: bool
    is_symlink: bool


def _to_unpack(members: Iterable[_Member], name: str) -> Iterator[str]:
    """The plain files of a 7z archive, if all of them together are not too much."""
    paths: set[PurePosixPath] = set()
    total = 0
    for count, member in enumerate(members):
        if count >= _MOST_ENTRIES:
            raise SubmissionError(f"{name} holds more than {_MOST_ENTRIES:,} files.")
        path = _inside(member.filename, name)
        if not member.is_file or not _is_listed(path):
            continue
        if path in paths:
            raise SubmissionError(f"{name} holds {printable(path)} twice.")
        paths.add(path)
        total += member.uncompressed
        if total > _MOST_UNPACKED_BYTES:
            raise _too_big(name)
        yield member.filename
