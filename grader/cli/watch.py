"""Says which sources of a folder were saved, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.submissions.submission import CLUTTER, SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from watchfiles import Change


def saved(folder: Path) -> Iterator[frozenset[str]]:
    """The names of the sources in ``folder`` that were saved, each time some were; ends at Ctrl-C."""
    from watchfiles import watch  # noqa: PLC0415 - no other command needs it

    for changes in watch(folder, watch_filter=_is_source, raise_interrupt=False):
        yield frozenset(Path(path).name for _, path in changes)


def _is_source(_change: Change, path: str) -> bool:
    """Whether a change is one of a source, and not of what an editor puts beside it."""
    parts = Path(path).parts
    hidden = any(part.startswith(".") or part in CLUTTER for part in parts)
    return Path(path).suffix in SOURCES and not hidden
