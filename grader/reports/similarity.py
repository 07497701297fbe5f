"""Writes a folder of submissions for JPlag, with CUDA rewritten so that JPlag's C++ parser can read it.

Files with kernels in Triton stay as they are, for JPlag's Python parser; it takes those of its suffix.

Line numbers do not change, so that JPlag's matches are at the same lines of the original files.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from grader.submissions.submission import collect, write
from grader.submissions.trees import SubmissionError, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grader.submissions.discovery import Entry

_LAUNCH = re.compile(r"<<<(.*?)>>>", re.DOTALL)
_BOUNDS = re.compile(r"__(?:launch_bounds|cluster_dims|maxnreg|align)__\s*\([^()]*\)")
_SPACES = re.compile(
    r"\b__(?:global|device|host|shared|constant|managed|forceinline|noinline|restrict|grid_constant)__\b"
)
_TRITON = re.compile(rb"^\s*(?:import|from) triton\b", re.MULTILINE)
_SUFFIXES = {".cu": ".cpp", ".cuh": ".hpp", ".inl": ".hpp", ".inc": ".hpp"}


def export(entries: Iterable[Entry], graded: Iterable[str], out: Path, scratch: Path) -> dict[str, str]:
    """Write ``out/NAME/FILE`` for each submission; return the reasons why some are left out, by name.

    Args:
        entries: the submissions.
        graded: the names of the files that are graded; the headers and sources beside them are compared too.
        out: a folder that does not exist or is empty.
        scratch: an empty folder in which loose files of a submission are collected.

    Raises:
        OSError: ``out`` cannot be written.
    """
    names, left_out = tuple(graded), {}
    for entry in entries:
        try:
            contents = dict(_contents(entry, names, scratch))
            for path, content in contents.items():
                if PurePath(path).suffix == ".py":
                    write(out / entry.name, path, content)
                    continue
                text = as_cpp(content.decode("utf-8", errors="replace"))
                write(out / entry.name, path + _SUFFIXES.get(PurePath(path).suffix, ""), text.encode())
        except (SubmissionError, UnreadableError) as error:
            left_out[entry.name] = str(error)
        else:
            if not contents:
                left_out[entry.name] = "nothing to compare"
    return left_out


def _contents(entry: Entry, graded: tuple[str, ...], scratch: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a submission that are compared, by path."""
    try:
        path = entry.lay_out(scratch)
    except OSError as error:
        raise SubmissionError(f"cannot read {error.filename}: {error.strerror}") from error
    with collect(path, graded) as submission:
        for name in submission.files:
            for file, content in submission.contents(name).items():
                if PurePath(file).suffix != ".py" or _TRITON.search(content):
                    yield file.replace("../", ""), content


def as_cpp(text: str) -> str:
    """CUDA C++ as C++: launches become calls, and keywords such as ``__global__`` are removed."""
    return _LAUNCH.sub(r"(\1)", _SPACES.sub("", _BOUNDS.sub(_line_ends, text)))


def _line_ends(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")
