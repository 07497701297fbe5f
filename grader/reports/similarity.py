"""A folder of submissions for JPlag, with CUDA spelt so that its C++ front end can parse it.

Line numbers stay as they are: what JPlag marks is found again in what was handed in.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from grader.submissions.submission import SubmissionError, UnreadableError, collect, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from grader.submissions.discovery import Entry

_LAUNCH = re.compile(r"<<<(.*?)>>>", re.DOTALL)
_BOUNDS = re.compile(r"__(?:launch_bounds|cluster_dims|maxnreg|align)__\s*\([^()]*\)")
_SPACES = re.compile(
    r"\b__(?:global|device|host|shared|constant|managed|forceinline|noinline|restrict|grid_constant)__\b"
)
_SUFFIXES = {".cu": ".cpp", ".cuh": ".hpp", ".inl": ".hpp", ".inc": ".hpp"}


def export(entries: Iterable[Entry], wanted: Iterable[str], out: Path, scratch: Path) -> dict[str, str]:
    """Write ``out/NAME/FILE`` for each submission; return why some are left out, by their names.

    Args:
        entries: the submissions.
        wanted: the files that are graded; the headers and sources beside them are compared too.
        out: a folder that is not there, or is empty.
        scratch: an empty folder for loose files to be put together in.

    Raises:
        OSError: ``out`` cannot be written to.
    """
    names, left = tuple(wanted), {}
    for entry in entries:
        try:
            contents = dict(_contents(entry, names, scratch))
            for path, content in contents.items():
                text = as_cpp(content.decode("utf-8", errors="replace"))
                write(out / entry.name, path + _SUFFIXES.get(PurePath(path).suffix, ""), text.encode())
        except (SubmissionError, UnreadableError) as error:
            left[entry.name] = str(error)
        else:
            if not contents:
                left[entry.name] = "nothing to compare"
    return left


def _contents(entry: Entry, wanted: tuple[str, ...], scratch: Path) -> Iterator[tuple[str, bytes]]:
    """What is compared of a submission, by path."""
    try:
        path = entry.lay_out(scratch)
    except OSError as error:
        raise SubmissionError(f"cannot read {error.filename}: {error.strerror}") from error
    with collect(path, wanted) as submission:
        for name in submission.files:
            for place, content in submission.contents(name).items():
                if PurePath(place).suffix != ".py":
                    yield place, content


def as_cpp(text: str) -> str:
    """CUDA C++ without what is no C++: launches become calls of calls, and words like ``__global__`` go."""
    return _LAUNCH.sub(r"(\1)", _SPACES.sub("", _BOUNDS.sub(_line_ends, text)))


def _line_ends(found: re.Match[str]) -> str:
    return "\n" * found[0].count("\n")
