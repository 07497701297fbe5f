"""Messages that begin with a place in a student's file of Python, as in ``kernel.py:7: what is wrong``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACED = re.compile(r"(?P<file>[^\s:;]+\.py):(?P<line>[1-9]\d*): (?P<what>.+)", re.DOTALL)


@dataclass(frozen=True)
class Placed:
    """A place, and what is said of it."""

    file: str
    line: int
    what: str


def placed(message: str) -> Placed | None:
    """The parts of ``message``; None if it begins with no place."""
    found = _PLACED.fullmatch(message)
    return Placed(found["file"], int(found["line"]), found["what"]) if found else None
