"""Messages of a runner that begin with a place in a file of Python, as in ``kernel.py:7: what is wrong``.

They come as text from a process that is not trusted. The place is read once, where the judge takes the
message in, and lies in the record from then on; a record before that has it from ``records/old.py``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACED = re.compile(r"(?P<file>[^\s:;]+\.py):(?P<line>[1-9]\d*): .+", re.DOTALL)


@dataclass(frozen=True)
class Placed:
    """A file and a line of it."""

    file: str
    line: int


def placed(message: str) -> Placed | None:
    """The place that ``message`` begins with; None if there is none."""
    match = _PLACED.fullmatch(message)
    return Placed(match["file"], int(match["line"])) if match else None
