"""Keeps what was built, by the hash of everything that it was made from.

An entry is a folder that appears by one rename, so graders that run side by side see it whole or not at all.
It says what its files hash to: one that a full disk or a person damaged is dropped, and built again.
The entries used least recently go first when the cache outgrows its bound, which is looked at once for every
thirty-second part of it that is stored.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from grader.processes import leftovers

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_BYTES = 1 << 30
_SHARE = 32  # of the bound: looking at all entries takes a quarter of a second where there are thousands
_DIGEST = "digest"  # of the other files of an entry


def default_folder() -> Path:
    """``GRADER_CACHE``, else ``kernel-grader`` in the user's cache folder.

    A relative ``XDG_CACHE_HOME`` is ignored, as its specification asks.
    """
    if chosen := os.environ.get("GRADER_CACHE"):
        return Path(chosen).absolute()
    named = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "kernel-grader"


def key(*parts: str | bytes) -> str:
    """The hash of ``parts``; where one part ends and the next begins counts."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


class Cache:
    """Entries of named files.

    Attributes:
        warning: why entries are not kept, empty as long as they are. They are then held in a temporary folder
            that lives as long as this object.
    """

    def __init__(self, folder: Path | None = None, most_bytes: int = _MOST_BYTES) -> None:
        self._folder = folder if folder is not None else default_folder()
        self._most_bytes = most_bytes
        self._temporary: Path | None = None
        self._stored = most_bytes  # bytes since it last looked at all entries
        self.warning = ""

    def find(self, name: str) -> Path | None:
        """The folder of entry ``name``, which counts as used now; a damaged one is dropped."""
        entry = self._folder / name
        if not entry.is_dir():
            return None
        if not _intact(entry):
            shutil.rmtree(entry, ignore_errors=True)
            return None
        with contextlib.suppress(OSError):  # a cache that may only be read still helps
            os.utime(entry)
        return entry

    def store(self, name: str, files: Mapping[str, bytes], program: str = "") -> Path:
        """Keep ``files`` as entry ``name``; returns its folder. The first of two equal entries stays.

        ``program`` is the file of them that can be run, if there is one.
        """
        try:
            return self._store(self._folder, name, files, program)
        except OSError as error:
            if not self.warning:
                self.warning = f"Builds are not cached: cannot write to {self._folder}: {error.strerror}."
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix=leftovers.prefix()))
            weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
        return self._store(self._temporary, name, files, program)

    def _store(self, folder: Path, name: str, files: Mapping[str, bytes], program: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        entry = folder / name
        new = Path(tempfile.mkdtemp(prefix=".new-", dir=folder))
        try:
            for file, content in files.items():
                (new / file).write_bytes(content)
            if program in files:
                (new / program).chmod(0o755)
            (new / _DIGEST).write_text(_digest(new))
            new.chmod(0o755)  # a sandbox under another user must be able to read it
            with contextlib.suppress(OSError):  # it came into being meanwhile
                new.rename(entry)
            if not _intact(entry):
                raise OSError(0, "an entry cannot be created")
        finally:
            shutil.rmtree(new, ignore_errors=True)
        self._stored += sum(map(len, files.values()))
        if self._stored > self._most_bytes // _SHARE:
            self._stored = 0
            self._evict(folder, entry)
        return entry

    def _evict(self, folder: Path, newest: Path) -> None:
        """Remove what was used least recently, and what an interrupted grader left, until the rest fits."""
        ages: list[tuple[float, int, Path]] = []
        for entry in folder.iterdir():
            with contextlib.suppress(OSError):  # another grader removed it
                ages.append((entry.stat().st_mtime, sum(f.stat().st_size for f in entry.iterdir()), entry))
        total = sum(size for _, size, _ in ages)
        for _, size, entry in sorted(ages):
            if total <= self._most_bytes:
                return
            if entry != newest:
                shutil.rmtree(entry, ignore_errors=True)
                total -= size


def _intact(entry: Path) -> bool:
    """Whether ``entry`` is there, and as it was stored."""
    try:
        return (entry / _DIGEST).read_bytes() == _digest(entry).encode()
    except OSError:
        return False


def _digest(entry: Path) -> str:
    files = sorted(path for path in entry.iterdir() if path.name != _DIGEST)
    return key(*(part for path in files for part in (path.name, path.read_bytes())))
