"""What a submission uses and the simulator lacks, where a case has reached it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GapKind(StrEnum):
    """What it is, in the order of the device."""

    INSTRUCTION = "instruction"
    CALL = "call"
    CODE = "code"


@dataclass(frozen=True)
class Gap:
    """One of them.

    Attributes:
        kind: what it is.
        subject: the instruction as PTX has it; the name of the runtime call; why the code cannot be run.
        feature: what people call the family of the instruction, such as "textures"; may be empty.
        function: the kernel or device function with the instruction.
        file: where it is, as far as that is known.
        line: from 1; 0 where no line is known.
    """

    kind: GapKind
    subject: str
    feature: str = ""
    function: str = ""
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        """One line for people."""
        if self.kind is GapKind.CALL:
            return f"runtime call {self.subject}"
        if self.kind is GapKind.CODE:
            return self.subject
        family = f"{self.feature}: " if self.feature else ""
        position = f" ({self.file}:{self.line})" if self.line else ""
        kind = "directive" if self.subject.startswith(".") else "instruction"
        return f"the simulator does not know {family}the {kind} '{self.subject}'{position} in {self.function}"
