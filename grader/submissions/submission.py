"""Collects the files of a submission, a folder or a zip, into a private copy that nothing else writes to.

A submission may be a whole homework: only names are listed until it is known which files are wanted. These
are read, and the headers below and near them that they mention; nothing else is opened, and an archive is
never unpacked as a whole.

What is wrong with a submission is a ``SubmissionError`` (the score is 0 and says why) or, for a file that is
not there, a line in ``problems``. A path that does not exist or cannot be read is a ``UnreadableError``: the
caller's to mend.
"""

from __future__ import annotations

import codecs
import difflib
import errno
import hashlib
import lzma
import os
import posixpath
import re
import stat
import tempfile
import zipfile
import zlib
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from grader.processes import leftovers
from grader.records.errors import MachineError
from grader.records.file_names import is_pattern

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

_MOST_ENTRIES = 200_000  # files and folders that are listed; a homework with a virtual environment has 30,000
_MOST_DEPTH = 12
_MOST_FILES = 500  # that are read
_MOST_FILE_BYTES = 4 << 20
_MOST_TOTAL_BYTES = 64 << 20
_MOST_RATIO = 200  # of a member's size to what it takes in the archive; source code reaches about 10
_RATIO_FROM_BYTES = 1 << 20  # below this a high ratio does no harm
_SHOWN = 3  # names in a note
_ABOVE = PurePosixPath("above", "above")  # in the private copy, for headers up to two folders above a file
_NEAR = 3  # folders up and down from a file to a header that does not lie below it
_TRAVELLERS = frozenset({".cu", ".cuh", ".h", ".hpp", ".inl", ".inc"})
SOURCES = _TRAVELLERS | {".py"}
OTHER_ARCHIVE = re.compile(r".+\.(?:tar(?:\.\w+)?|tgz|tbz2?|txz|gz|bz2|xz|7z|rar)", re.IGNORECASE)
CLUTTER = frozenset({"__MACOSX", "__pycache__"})
_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    ValueError,
)
_OF_DAMAGE = {None, errno.EINVAL}  # of an OSError: bzip2 says nothing, and offsets may lie before the file
_ENCRYPTED = 0x1
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MENTION = re.compile(rb'["<]([^"<>\n]+\.(?:cuh?|hpp|h|inl|inc))[">]')


class SubmissionError(Exception):
    """The submission cannot be graded: score 0, with this reason."""


class UnreadableError(MachineError):
    """There is no such submission, or it cannot be read here: no student's fault."""


@dataclass(frozen=True)
class Submission:
    """What was handed in. As a context manager it removes its private copy at the end.

    Attributes:
        name: the folder's or archive's name, printable.
        sha256: the hash of all collected files with their names.
        files: the wanted files that are there, by name, in the private copy.
        notes: what was taken from where and what was ignored, unless the files lie at the top alone.
        problems: why a wanted file is missing or cannot be read, by its name.
        matched: the names of the files that no name asked for, only a pattern.
    """

    name: str
    sha256: str
    files: Mapping[str, Path]
    notes: tuple[str, ...]
    problems: Mapping[str, str]
    matched: tuple[str, ...]
    _copy: tempfile.TemporaryDirectory[str] = field(repr=False, compare=False)

    def contents(self, name: str) -> dict[str, bytes]:
        """The wanted file ``name`` and the headers that belong to it, by path from its folder.

        All that its compiler may see. A path begins with up to two ``../`` where a header lies above.
        """
        folder = self.files[name].parent
        paths = sorted(folder.parents[len(_ABOVE.parts) - 1].rglob("*"))
        return {posixpath.relpath(path, folder): path.read_bytes() for path in paths if path.is_file()}

    def close(self) -> None:
        """Remove the private copy."""
        self._copy.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def printable(name: str | PurePosixPath) -> str:
    """A name that may hold bytes that are no UTF-8, as text that can be written anywhere."""
    return str(name).encode(errors="surrogateescape").decode(errors="replace")


def collect(path: Path, names: Iterable[str]) -> Submission:
    """Collect the files called ``names`` of the submission at ``path``, and the headers that they mention.

    They may lie at any depth. All are taken from the folder that holds most of them; among equals from the
    least deep one, from one called ``src``, and from the first in the alphabet, in this order. Beside those
    that are there, every file is taken that a pattern among ``names`` matches, such as ``*.cu``.

    Raises:
        SubmissionError: it is empty, damaged, encrypted, escaping or too big.
        UnreadableError: ``path`` does not exist, or something of it cannot be read.
        OSError: the temporary folder cannot be written to, a fault of the machine.
    """
    required = list(names)
    try:
        mode = path.stat().st_mode
    except PermissionError as error:
        raise _unreadable(path, error) from error
    except OSError as error:
        hint = _nearest_path(path)
        raise UnreadableError(
            f"{printable(str(path))} does not exist. Give a folder or a .zip file.{hint}"
        ) from error
    with ExitStack() as stack:
        if stat.S_ISDIR(mode):
            tree: _Tree = _Folder(path)
        elif stat.S_ISREG(mode) and (path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)):
            tree = stack.enter_context(_Archive(path))
        else:
            raise SubmissionError(
                f"{printable(path.name)} is neither a folder nor a zip archive. Hand in one of the two."
            )
        return _collected(path, tree, required)


def _collected(path: Path, tree: _Tree, wanted: list[str]) -> Submission:
    names = [name for name in wanted if not is_pattern(name)]
    patterns = [name for name in wanted if is_pattern(name)]
    sources = [file for file in tree.paths if file.suffix.lower() in SOURCES or file.name in names]
    if not sources:
        archives = (
            file for file in tree.paths if file.suffix.lower() == ".zip" or OTHER_ARCHIVE.fullmatch(file.name)
        )
        inner = next(archives, None)
        hint = f" Found {printable(inner)} in it: unpack that first." if inner is not None else ""
        raise SubmissionError(
            f"{printable(path.name)} holds no source file. Expected: {_alternatives(names)}.{hint}"
        )
    chosen = _choose(sources, names)
    matched = _matched(sources, chosen, names, patterns)
    chosen |= matched
    unnamed = [file for file in sources if file.name not in names]
    reader = _Reader(tree)
    problems = {name: _missing(name, unnamed) for name in names if name not in chosen}
    parts = {name: _with_headers(file, sources, reader) for name, file in chosen.items()}
    foreign = {file for file, content in reader.contents.items() if content.startswith(_UTF_16)}
    for name in [name for name, file in chosen.items() if file in foreign]:
        foreign.remove(chosen[name])
        problems[name] = f"{printable(chosen.pop(name))} is in UTF-16. Save it as UTF-8."
    copy = tempfile.TemporaryDirectory(prefix=leftovers.prefix())
    numbers = {file.parent: str(number) for number, file in enumerate(dict.fromkeys(chosen.values()))}
    digest = hashlib.sha256()
    files = {}
    try:
        for name, source in sorted(chosen.items()):
            folder = Path(copy.name, numbers[source.parent], _ABOVE)
            files[name] = folder / name
            for relative, content in sorted(parts[name].items()):
                write(folder, relative, content)
                digest.update(f"{len(relative.encode())}:{relative}{len(content)}:".encode() + content)
    except (SubmissionError, OSError):
        copy.cleanup()
        raise
    title = printable(path.resolve().name.removesuffix(".zip") or str(path.resolve()))
    notes = (
        *_doubts(chosen, sources, reader),
        *_taken(chosen, tree, set(reader.contents)),
        *(f"{printable(file)} is in UTF-16: save it as UTF-8" for file in sorted(foreign)),
    )
    return Submission(
        title, digest.hexdigest(), files, notes, problems, tuple(sorted(matched.keys() & files)), copy
    )


def _alternatives(names: list[str]) -> str:
    """These names, where those of one file in several languages are alternatives."""
    by_stem: dict[str, list[str]] = {}
    for name in names:
        by_stem.setdefault(PurePosixPath(name).stem, []).append(name)
    return ", ".join(" or ".join(same) for same in by_stem.values())


def _nearest_path(path: Path) -> str:
    try:
        beside = set(os.listdir(path.parent)) - {path.name}  # noqa: PTH208 - a link may lead nowhere
        close = difflib.get_close_matches(path.name, beside, n=1)
    except OSError:
        return ""
    return f" Did you mean {printable(str(path.parent / close[0]))}?" if close else ""


def _unreadable(path: Path, error: OSError) -> UnreadableError:
    return UnreadableError(
        f"cannot read {printable(str(path))}: {error.strerror}. Make it readable (chmod -R u+rX, if it is "
        "yours) and grade again."
    )


def _interesting(path: PurePosixPath) -> bool:
    return not any(part in CLUTTER or part.startswith(".") for part in path.parts)


class _Tree(Protocol):
    """The paths of a submission's files from its folder, in order, and a way to read each."""

    paths: list[PurePosixPath]

    def read(self, path: PurePosixPath) -> bytes:
        """The content of a file, one byte more than is allowed if it is longer."""


class _Folder:
    """A folder; no link in it is followed."""

    def __init__(self, root: Path) -> None:
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
                raise _unreadable(self._root / folder, error) from error
            count += len(entries)
            if count > _MOST_ENTRIES:
                raise SubmissionError(
                    f"{printable(self._root.name)} holds more than {_MOST_ENTRIES:,} files."
                )
            for entry in entries:
                path = folder / entry.name
                if not _interesting(PurePosixPath(entry.name)):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    if len(path.parts) < _MOST_DEPTH:
                        pending.append(path)
                elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                    yield path

    def read(self, relative: PurePosixPath) -> bytes:
        path = self._root / relative
        if path.is_symlink():
            raise SubmissionError(f"{printable(relative)} is a link. Hand in the file itself.")
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                os.close(fd)
                raise SubmissionError(f"{printable(relative)} is not a plain file.")
            with open(fd, "rb") as file:  # noqa: PTH123
                return file.read(_MOST_FILE_BYTES + 1)
        except OSError as error:
            raise _unreadable(path, error) from error


class _Archive:
    """A zip archive. No member may lead out of it; what is read is checked before it is unpacked."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = printable(path.name)
        self._stack = ExitStack()
        try:
            self._zip = self._stack.enter_context(zipfile.ZipFile(path))
            self._members = self._listed()
        except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
            self._stack.close()
            raise self._error(error) from error
        except SubmissionError:
            self._stack.close()
            raise
        self.paths = sorted(self._members)

    def _listed(self) -> dict[PurePosixPath, list[zipfile.ZipInfo]]:
        infos = self._zip.infolist()
        if len(infos) > _MOST_ENTRIES:
            raise SubmissionError(f"{self._name} holds more than {_MOST_ENTRIES:,} files.")
        members: dict[PurePosixPath, list[zipfile.ZipInfo]] = {}
        for info in infos:
            path = PurePosixPath(info.filename.replace("\\", "/"))
            if path.is_absolute() or ".." in path.parts or (path.parts and path.parts[0].endswith(":")):
                raise SubmissionError(f"{self._name} holds {info.filename}, which would escape its folder.")
            if info.flag_bits & _ENCRYPTED:
                raise SubmissionError(f"{self._name} is encrypted. Hand it in without a password.")
            if path.name and not info.is_dir() and _interesting(path) and len(path.parts) <= _MOST_DEPTH:
                members.setdefault(path, []).append(info)
        return members

    def read(self, path: PurePosixPath) -> bytes:
        info, *duplicates = self._members[path]
        if duplicates:
            raise SubmissionError(f"{self._name} holds {path} twice.")
        if stat.S_ISLNK(info.external_attr >> 16):
            raise SubmissionError(f"{self._name} holds a link, {path}. Put the file itself in.")
        packed = max(1, info.compress_size)
        if info.file_size > _RATIO_FROM_BYTES and info.file_size / packed > _MOST_RATIO:
            raise SubmissionError(f"{path} in {self._name} unpacks to {info.file_size // packed} times.")
        try:
            with self._zip.open(info) as file:
                return file.read(_MOST_FILE_BYTES + 1)
        except _UNREADABLE as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> SubmissionError | UnreadableError:
        if isinstance(error, OSError) and error.errno not in _OF_DAMAGE:
            return _unreadable(self._path, error)
        return SubmissionError(f"{self._name} is not a zip archive or is damaged: {error}. Zip it again.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


class _Reader:
    """Reads files of a tree, each once, within the limits of a submission."""

    def __init__(self, tree: _Tree) -> None:
        self._tree = tree
        self._total = 0
        self.contents: dict[PurePosixPath, bytes] = {}

    def read(self, path: PurePosixPath) -> bytes:
        if path not in self.contents:
            content = self._tree.read(path)
            self._total += len(content)
            if len(content) > _MOST_FILE_BYTES:
                raise SubmissionError(f"{printable(path)} is larger than {_MOST_FILE_BYTES >> 20} MiB.")
            if len(self.contents) >= _MOST_FILES or self._total > _MOST_TOTAL_BYTES:
                raise SubmissionError(
                    f"the files that {printable(path)} belongs to are more than {_MOST_FILES} "
                    f"or {_MOST_TOTAL_BYTES >> 20} MiB."
                )
            self.contents[path] = content
        return self.contents[path]


def _choose(sources: list[PurePosixPath], names: list[str]) -> dict[str, PurePosixPath]:
    """The path that each wanted file is taken from, if there is one; ``collect`` explains the rule."""
    held: dict[PurePosixPath, set[str]] = {}
    for path in sources:
        if path.name in names:
            held.setdefault(path.parent, set()).add(path.name)

    def rank(folder: PurePosixPath) -> tuple[int, int, bool, str]:
        return -len(held[folder]), len(folder.parts), folder.name != "src", str(folder)

    ranked = sorted(held, key=rank)
    folders = {name: next((folder for folder in ranked if name in held[folder]), None) for name in names}
    return {name: folder / name for name, folder in folders.items() if folder is not None}


def _matched(
    sources: list[PurePosixPath],
    chosen: Mapping[str, PurePosixPath],
    names: list[str],
    patterns: list[str],
) -> dict[str, PurePosixPath]:
    """The files that a pattern alone asks for, by name: in the folders of those that are ``chosen``."""
    folders = {path.parent for path in chosen.values()}
    return {
        path.name: path
        for path in sources
        if path.parent in folders
        and path.name not in names
        and any(fnmatchcase(path.name, pattern) for pattern in patterns)
    }


def _doubts(
    chosen: Mapping[str, PurePosixPath], sources: list[PurePosixPath], reader: _Reader
) -> Iterator[str]:
    """A warning for each file that is there more than once."""
    for name, taken in chosen.items():
        duplicates = [path for path in sources if path.name == name and path != taken]
        if not duplicates:
            continue
        if len(duplicates) <= _SHOWN and all(_same(reader, taken, other) for other in duplicates):
            yield f"{name} is there more than once: took {printable(taken)}; the others hold the same"
        else:
            yield f"{name} is there more than once: took {printable(taken)}, not {_listed(duplicates)}"


def _same(reader: _Reader, first: PurePosixPath, other: PurePosixPath) -> bool:
    try:
        return reader.read(first) == reader.read(other)
    except (SubmissionError, UnreadableError):  # not a file that is graded, so no reason not to grade
        return False


def _taken(chosen: Mapping[str, PurePosixPath], tree: _Tree, read: set[PurePosixPath]) -> Iterator[str]:
    """Notes on which files were taken, and which were not read."""
    folders = dict.fromkeys(path.parent for path in chosen.values())
    for folder in folders:
        if folder.parts:
            names = [name for name, path in chosen.items() if path.parent == folder]
            verb = "were" if len(names) > 1 else "was"
            yield f"{' and '.join(names)} {verb} taken from {printable(folder)}/"
    ignored = [path for path in tree.paths if path not in read]
    if ignored:
        yield f"ignored {_listed(ignored)}"


def write(folder: Path, relative: str, content: bytes) -> None:
    """Write a file that a submission names.

    Raises:
        SubmissionError: it cannot have such a name.
        OSError: the folder cannot be written to.
    """
    target = Path(posixpath.normpath(folder / relative))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise SubmissionError(f"{printable(relative)} is both a file and a folder.") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise SubmissionError(f"{printable(relative)} is too long a name.") from error
        raise


def _listed(paths: list[PurePosixPath]) -> str:
    shown = ", ".join(printable(path) for path in paths[:_SHOWN])
    return shown + (f" and {len(paths) - _SHOWN:,} more files" if len(paths) > _SHOWN else "")


def _missing(name: str, sources: list[PurePosixPath]) -> str:
    """Why a wanted file is not there, with the file that was probably meant."""
    suffix = PurePosixPath(name).suffix
    by_name = {path.name.lower(): path for path in reversed(sources) if path.suffix.lower() == suffix}
    close = difflib.get_close_matches(name.lower(), by_name, n=1, cutoff=0.5)
    if close:
        return f"{name} is missing. Found {printable(by_name[close[0]])}: rename it to {name}."
    return f"{name} is missing."


def _with_headers(chosen: PurePosixPath, sources: list[PurePosixPath], reader: _Reader) -> dict[str, bytes]:
    """The chosen file, and the headers and sources that it and they mention.

    Those beside and below it; of a name that is not there, the nearest one, if it is near. By path from the
    folder of the chosen file.
    """
    folder = chosen.parent
    by_name: dict[str, list[PurePosixPath]] = {}
    for path in sources:
        if path.suffix in _TRAVELLERS:
            by_name.setdefault(path.name, []).append(path)
    contents = {chosen: reader.read(chosen)}
    pending = [chosen]
    while pending:
        includer = pending.pop()
        for mention in {text.decode(errors="replace") for text in _MENTION.findall(contents[includer])}:
            candidates = by_name.get(mention.rsplit("/", 1)[-1], [])
            near = [path for path in candidates if _near(path, folder)]
            below = [path for path in near if path.is_relative_to(folder)]
            for path in below or _nearest(mention, includer, near):
                if path not in contents:
                    contents[path] = reader.read(path)
                    pending.append(path)
    return {posixpath.relpath(path, folder): content for path, content in contents.items()}


def _near(path: PurePosixPath, folder: PurePosixPath) -> bool:
    """Whether a file lies below ``folder`` or near it, and has a name that can be written."""
    steps = PurePosixPath(posixpath.relpath(path, folder)).parts
    up = steps.count("..")
    return "".join(steps).isprintable() and (not up or (up <= len(_ABOVE.parts) and len(steps) <= _NEAR + 1))


def _nearest(mention: str, includer: PurePosixPath, paths: list[PurePosixPath]) -> list[PurePosixPath]:
    """The path among ``paths`` that ``mention`` leads to, else the nearest one; at most one."""

    def rank(path: PurePosixPath) -> tuple[bool, int, str]:
        way = posixpath.relpath(path, includer.parent)
        return way != posixpath.normpath(mention), way.count("/"), way

    return sorted(paths, key=rank)[:1]
