"""The source lines around a finding, which the record keeps so that reports need no other file."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from grader.records.record import SourceLines

if TYPE_CHECKING:
    from collections.abc import Mapping

AROUND = 3  # lines before the place, and after it
MOST_CHARACTERS = 200  # of a line


def excerpt(sources: Mapping[str, bytes], file: str, line: int) -> SourceLines | None:
    """The lines around ``line`` (from 1) of ``file``, of which only the end of its path is known.

    None if ``sources``, the submission's files by path, do not hold that line or hold several such files: it
    lies in a header of CUDA, or no line is known.
    """
    parts = PurePath(file).parts
    named = [path for path in sources if PurePath(path).name == parts[-1]] if parts else []
    if len(named) > 1:
        named = [path for path in named if PurePath(path).parts == parts[-len(PurePath(path).parts) :]]
    lines = sources[named[0]].decode("utf-8", errors="replace").split("\n") if len(named) == 1 else []
    if not 1 <= line <= len(lines) or lines == [""]:
        return None
    first = max(1, line - AROUND)
    shown = lines[first - 1 : line + AROUND]
    return SourceLines(first=first, lines=[text.rstrip("\r")[:MOST_CHARACTERS] for text in shown])
