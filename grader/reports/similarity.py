"""A folder of submissions for JPlag, with CUDA spelt so that its C++ front end can parse it.

Line numbers stay as they are: what JPlag marks is found again in what was handed in.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from grader.submission import SubmissionError, collect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from grader.batch.discovery import Entry

_LAUNCH = re.compile(r"<<<(.*?)>>>", re.DOTALL)
_BOUNDS = re.compile(r"__(?:launch_bounds|cluster_dims|maxnreg|align)__\s*\([^()]*\)")
_SPACES = re.compile(
    r"\b__(?:global|device|host|shared|constant|managed|forceinline|noinline|restrict|grid_constant)__\b"
)
_SUFFIXES = {".cu": ".cpp", ".cuh": ".hpp", ".inl": ".hpp", ".inc": ".hpp"}


def export(entries: Iterable[Entry], wanted: Iterable[str], out: Path, scratch: Path) -> tuple[str, ...]:
    """Write ``out/NAME/FILE`` for each submission; return the names of those that hold nothing to compare.

    Args:
        entries: the submissions.
        wanted: the files that are graded; the headers and sources beside them are compared too.
        out: a folder that is not there, or is empty.
        scratch: an empty folder for loose files to be put together in.

    Raises:
        OSError: something cannot be read or written.
    """
    names, left = tuple(wanted), []
    for entry in entries:
        try:
            with collect(entry.lay_out(scratch), names) as submission:
                files = (submission.contents(name) for name in submission.files)
                contents = {
                    path: content
                    for file in files
                    for path, content in file.items()
                    if PurePath(path).suffix != ".py"
                }
        except SubmissionError:
            contents = {}
        if not contents:
            left.append(entry.name)
            continue
        for path, content in contents.items():
            place = out / entry.name / (path + _SUFFIXES.get(PurePath(path).suffix, ""))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(as_cpp(content.decode("utf-8", errors="replace")), "utf-8")
    return tuple(left)


def as_cpp(text: str) -> str:
    """CUDA C++ without what is no C++: launches become calls of calls, and words like ``__global__`` go."""
    return _LAUNCH.sub(r"(\1)", _SPACES.sub("", _BOUNDS.sub(_line_ends, text)))


def _line_ends(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
