"""What the checkers of the simulator see, and what it counts at each source line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

ONLY_REPORTED = frozenset({"unfenced_lock", "index_overflow"})
"""Kinds of findings that cost no points; neither do findings that are warnings."""


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    WARNING = "warning"  # right on every GPU, and yet not as it should be


@dataclass(frozen=True)
class Line:
    """A line of a source."""

    file: str
    line: int


@dataclass(frozen=True)
class Place(Line):
    """Where an access or a barrier is that a finding is about, and the calls around it."""

    calls: tuple[Line, ...] = ()  # that are inlined there, from the inside


@dataclass(frozen=True)
class Finding:
    """What a checker saw, once per place. Names of tools and kinds stand in ``docs/findings.md``."""

    tool: str
    kind: str
    kernel: str
    file: str
    line: int  # 0 where no line is known
    message: str
    severity: Severity = Severity.ERROR
    places: tuple[Place, ...] = ()  # its own, and of a race the other access's; none where no line is known

    @property
    def counts(self) -> bool:
        """Whether it costs points."""
        return self.severity is Severity.ERROR and self.kind not in ONLY_REPORTED


@dataclass(frozen=True)
class LineCount:
    """What one source line asked of the memory system, summed over launches."""

    kernel: str
    file: str
    line: int
    instructions: int  # of warps
    lanes: int
    global_requests: int
    global_sectors: int
    minimal_sectors: int
    global_bytes: int
    shared_requests: int
    shared_wavefronts: int
    minimal_wavefronts: int
    barriers: int
    undefined_lanes: int  # that a shuffle gave what no lane of its mask has
