"""What came of the fresh machines, as data and as a table in Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from steps import Step

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_HEAD = """\
| machine | has | system | Python | wall time | processor time | download | disk | outcome |
|---|---|---|---|--:|--:|--:|--:|---|
"""


class Verdict(StrEnum):
    """Whether a row came out as ``machines.py`` says."""

    AS_EXPECTED = "as expected"
    UNEXPECTED = "UNEXPECTED"
    UNREACHABLE = "image not reachable"


@dataclass(frozen=True)
class Row:
    """What came of a machine.

    Attributes:
        machine: its name.
        has: what is installed there beside Python.
        system: the distribution.
        verdict: whether it came out as expected.
        said: the line that it was to say; else the end of what it said, or why there is no image.
        python: the version of its Python.
        steps: the commands that were tried.
        downloaded_bytes: what pip fetched, or took from a local index.
        disk_bytes: what the commands left in the user's home.
    """

    machine: str
    has: str
    system: str
    verdict: Verdict
    said: str
    python: str = ""
    steps: tuple[Step, ...] = ()
    downloaded_bytes: int = 0
    disk_bytes: int = 0


def write(rows: Iterable[Row], path: Path) -> None:
    """Write rows as JSON."""
    path.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


def read(path: Path) -> list[Row]:
    """The rows that ``write`` has written."""
    found = json.loads(path.read_text())
    own = (
        {"verdict": Verdict(row["verdict"]), "steps": tuple(Step(**step) for step in row["steps"])}
        for row in found
    )
    return [Row(**{**row, **typed}) for row, typed in zip(found, own, strict=True)]


def markdown(rows: Iterable[Row]) -> str:
    """A line for each row; where several commands were tried, their times stand one after the other."""
    return _HEAD + "".join(f"| {' | '.join(_cells(row))} |\n" for row in rows)


def _cells(row: Row) -> list[str]:
    said = " ".join(row.said.split()).replace("|", "\\|")
    outcome = said if row.verdict is Verdict.AS_EXPECTED else f"**{row.verdict}**: {said}"
    times = [
        ", ".join(map(_minutes, numbers))
        for numbers in ([s.seconds for s in row.steps], [s.processor_seconds for s in row.steps])
    ]
    sizes = [f"{count / 1e9:.2f} GB" if row.steps else "" for count in (row.downloaded_bytes, row.disk_bytes)]
    return [row.machine, row.has, row.system, row.python, *times, *sizes, outcome]


def _minutes(seconds: float) -> str:
    return f"{round(seconds) // 60}:{round(seconds) % 60:02}"
