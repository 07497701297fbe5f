"""What has stored last into an element of an array, as data.

Layer: imports the places of findings.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from grader.records.findings import Place


class By(StrEnum):
    """What has stored."""

    NOTHING = "nothing"
    COPY = "copy"  # or a fill
    KERNEL = "kernel"


@dataclass(frozen=True)
class LastStore:
    """The last store into an element.

    Attributes:
        by: what has stored.
        kernel: its name, as the compiler has it; empty where no kernel has stored.
        place: of the store, with the thread; without a line where no kernel has stored or none is known.
    """

    by: By
    kernel: str = ""
    place: Place = Place("", 0)  # noqa: RUF009 - frozen


@dataclass(frozen=True)
class StoreInTriton(LastStore):
    """The last store into an element, by a kernel of Triton."""
