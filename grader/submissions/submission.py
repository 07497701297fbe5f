"""Collects the files of a submission, a folder or an archive, into a private copy that nothing else changes.

A submission may be a whole homework: only names are listed until it is known which files are wanted. These
are read, and the headers below and near them that they mention; nothing else is opened. The archives in it
are opened only where none of the wanted files lies outside.

What is wrong with a submission is a ``SubmissionError`` (nothing is decided, and the reason is told) or, for
a file that is not there, a line in ``problems``. A path that does not exist or cannot be read is a
``UnreadableError``: the caller's to mend.
"""

from __future__ import annotations

import codecs
import difflib
import errno
import hashlib
import os
import posixpath
import re
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from grader.processes import leftovers
from grader.records.file_names import MARKER, is_pattern
from grader.submissions.trees import (
    MOST_FILE_BYTES,
    MOST_TOTAL_BYTES,
    EmptyError,
    SubmissionError,
    UnreadableError,
    is_archive,
    is_other_archive,
    opened,
    printable,
    stem,
    unreadable,
    with_archives,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Self

    from grader.submissions.trees import Tree

_MOST_FILES = 500  # that are read
_SHOWN = 3  # names in a note
_ABOVE = PurePosixPath("above", "above")  # in the private copy, for headers up to two folders above a file
_NEAR = 3  # folders up and down from a file to a header that does not lie below it
_TRAVELLERS = frozenset({".cu", ".cuh", ".h", ".hpp", ".inl", ".inc"})
SOURCES = _TRAVELLERS | {".py"}
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_VERSION = re.compile(rb'^version = "([0-9a-f]{12})"$', re.MULTILINE)
_MENTION = re.compile(rb'["<]([^"<>\n]+\.(?:cuh?|hpp|h|inl|inc))[">]')


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
        version: of the assignment that its folder was made for, where the marker there says it.
    """

    name: str
    sha256: str
    files: Mapping[str, Path]
    notes: tuple[str, ...]
    problems: Mapping[str, str]
    matched: tuple[str, ...]
    _copy: tempfile.TemporaryDirectory[str] = field(repr=False, compare=False)
    version: str = ""

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


def collect(path: Path, names: Iterable[str]) -> Submission:
    """Collect the files called ``names`` of the submission at ``path``, and the headers that they mention.

    They may lie at any depth. All are taken from the folder that holds most of them; among equals from the
    least deep one, from one called ``src``, and from the first in the alphabet, in this order. A name in
    another case is taken where none is exact. Beside those that are there, every file is taken that a pattern
    among ``names`` matches, such as ``*.cu``.

    Raises:
        EmptyError: it holds no source file.
        SubmissionError: it is damaged, encrypted, escaping or too big.
        UnreadableError: ``path`` does not exist, or something of it cannot be read.
        OSError: the temporary folder cannot be written to, a fault of the machine.
    """
    required = list(names)
    try:
        path.stat()
    except PermissionError as error:
        raise unreadable(path, error) from error
    except OSError as error:
        hint = _nearest_path(path)
        raise UnreadableError(
            f"{printable(str(path))} does not exist. Give a folder or an archive.{hint}"
        ) from error
    with ExitStack() as stack:
        tree = stack.enter_context(opened(path))
        lower_case = {name.casefold() for name in required}
        if not any(_is_wanted(file, lower_case) for file in tree.paths):
            tree = stack.enter_context(with_archives(tree))
        return _collected(path, tree, required)


def _is_wanted(file: PurePosixPath, lower_case: Collection[str]) -> bool:
    """Whether a file is asked for, by names and patterns in lower case."""
    name = file.name.casefold()
    return name in lower_case or any(is_pattern(each) and fnmatchcase(name, each) for each in lower_case)


def _collected(path: Path, tree: Tree, wanted: list[str]) -> Submission:
    names = [name for name in wanted if not is_pattern(name)]
    patterns = [name for name in wanted if is_pattern(name)]
    named = {name.casefold() for name in names}
    sources = [file for file in tree.paths if file.suffix.lower() in SOURCES or file.name.casefold() in named]
    if not sources:
        archives = (file for file in tree.paths if is_archive(file.name) or is_other_archive(file.name))
        inner = next(archives, None)
        hint = f" Found {printable(inner)} in it: unpack that first." if inner is not None else ""
        raise EmptyError(
            f"{printable(path.name)} holds no source file. Expected: {_alternatives(names)}.{hint}"
        )
    chosen = _choose(sources, names)
    matched = _matched(sources, chosen, names, patterns)
    chosen |= matched
    unnamed = [file for file in sources if file.name not in names and file not in chosen.values()]
    reader = _Reader(tree)
    problems = {name: _missing(name, unnamed) for name in names if name not in chosen}
    parts = {name: _with_headers(name, file, sources, reader) for name, file in chosen.items()}
    foreign = {file for file, content in reader.contents.items() if content.startswith(_UTF_16)}
    for name in [name for name, file in chosen.items() if file in foreign]:
        foreign.remove(chosen[name])
        problems[name] = f"{printable(chosen.pop(name))} is in UTF-16. Save it as UTF-8."
    version = _version(tree)
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
    title = printable(stem(path.resolve().name) or str(path.resolve()))
    notes = (
        *(f"took {printable(file)} for {name}" for name, file in chosen.items() if file.name != name),
        *_doubts(chosen, sources, reader),
        *_taken(chosen, tree, set(reader.contents)),
        *(f"{printable(file)} is in UTF-16: save it as UTF-8" for file in sorted(foreign)),
    )
    return Submission(
        title,
        digest.hexdigest(),
        files,
        notes,
        problems,
        tuple(sorted(matched.keys() & files)),
        copy,
        version,
    )


def _version(tree: Tree) -> str:
    """The version of the assignment in the marker that lies least deep; "" where there is none."""
    markers = sorted((file for file in tree.paths if file.name == MARKER), key=lambda file: len(file.parts))
    found = _VERSION.search(tree.read(markers[0])) if markers else None
    return found[1].decode() if found else ""


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


class _Reader:
    """Reads files of a tree, each once, within the limits of a submission."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._total = 0
        self.contents: dict[PurePosixPath, bytes] = {}

    def read(self, path: PurePosixPath) -> bytes:
        if path not in self.contents:
            content = self._tree.read(path)
            self._total += len(content)
            if len(content) > MOST_FILE_BYTES:
                raise SubmissionError(f"{printable(path)} is larger than {MOST_FILE_BYTES >> 20} MiB.")
            if len(self.contents) >= _MOST_FILES or self._total > MOST_TOTAL_BYTES:
                raise SubmissionError(
                    f"the files that {printable(path)} belongs to are more than {_MOST_FILES} "
                    f"or {MOST_TOTAL_BYTES >> 20} MiB."
                )
            self.contents[path] = content
        return self.contents[path]


def _choose(sources: list[PurePosixPath], names: list[str]) -> dict[str, PurePosixPath]:
    """The path that each wanted file is taken from, if there is one; ``collect`` explains the rule."""
    exact = {path: path.name for path in sources if path.name in names}
    missing = {name.casefold(): name for name in names if name not in exact.values()}
    other_case = {path: missing[path.name.casefold()] for path in sources if path.name.casefold() in missing}
    called = exact | other_case
    held: dict[PurePosixPath, dict[str, PurePosixPath]] = {}
    for path in sources:
        if path in called:
            held.setdefault(path.parent, {}).setdefault(called[path], path)

    def rank(folder: PurePosixPath) -> tuple[int, int, bool, str]:
        return -len(held[folder]), len(folder.parts), folder.name != "src", str(folder)

    ranked = sorted(held, key=rank)
    folders = {name: next((folder for folder in ranked if name in held[folder]), None) for name in names}
    return {name: held[folder][name] for name, folder in folders.items() if folder is not None}


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
        and path not in chosen.values()
        and any(fnmatchcase(path.name, pattern) for pattern in patterns)
    }


def _doubts(
    chosen: Mapping[str, PurePosixPath], sources: list[PurePosixPath], reader: _Reader
) -> Iterator[str]:
    """A warning for each file that is there more than once."""
    for name, taken in chosen.items():
        duplicates = [path for path in sources if path.name == taken.name and path != taken]
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


def _taken(chosen: Mapping[str, PurePosixPath], tree: Tree, read: set[PurePosixPath]) -> Iterator[str]:
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


def _with_headers(
    name: str, chosen: PurePosixPath, sources: list[PurePosixPath], reader: _Reader
) -> dict[str, bytes]:
    """The chosen file, under its wanted ``name``, and the headers and sources that it and they mention.

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
    content = contents.pop(chosen)
    return {posixpath.relpath(path, folder): other for path, other in contents.items()} | {name: content}


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
