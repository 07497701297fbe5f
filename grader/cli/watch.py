"""Says which sources of a folder were saved, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grader.submissions.submission import SOURCES
from grader.submissions.trees import CLUTTER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from watchfiles import Change


_LOOK_MILLISECONDS = 200


class Watch:
    """Sees what is saved in ``folder`` from now on, also while nobody asks."""

    def __init__(self, folder: Path) -> None:
        from watchfiles import watch  # noqa: PLC0415 - no other command needs it

        self._changes = watch(
            folder,
            watch_filter=_is_source,
            rust_timeout=_LOOK_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
        )
        next(self._changes)  # it begins to look

    def saved(self) -> Iterator[frozenset[str]]:
        """The names of the sources that were saved, each time some were; ends at Ctrl-C."""
        for changes in self._changes:
            if changes:
                yield frozenset(Path(path).name for _, path in changes)


def _is_source(_change: Change, path: str) -> bool:
    """Whether a change is one of a source, and not of what an editor puts beside it."""
    parts = Path(path).parts
    hidden = any(part.startswith(".") or part in CLUTTER for part in parts)
    return Path(path).suffix in SOURCES and not hidden
