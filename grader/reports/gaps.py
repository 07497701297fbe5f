"""What the simulator lacks and a case has reached, in words: why a problem is undecided, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.records.gaps import GapKind

if TYPE_CHECKING:
    from grader.records.record import GapRecord, ProblemResult

_INSTEAD = {
    "textures": "Read the array itself: a const float* __restrict__ goes through the same cache.",
    "surfaces": "Write to an array in global memory.",
    "wgmma": "Use nvcuda::wmma: grading goes by the instructions of sm_80.",
    "tcgen05": "Use nvcuda::wmma: grading goes by the instructions of sm_80.",
    "TMA": "Copy with cuda::memcpy_async or ordinary loads: grading goes by the instructions of sm_80.",
    "thread block clusters": "Let blocks meet in global memory, or launch a second kernel.",
}
_OTHER_INSTRUCTION = "Write this line with other instructions, those of sm_80."
_OTHER_CALL = "Do without this call."
_OF_ARRAYS = ("Array", "Channel", "Texture", "Surface", "Mipmap")
_PLAIN_ARRAY = "Allocate with cudaMalloc, and pass the pointer to the kernel."
_OTHER_CODE = "Compile and call the kernel in the usual way, or ask staff to look at it."


def gaps(problem: ProblemResult) -> tuple[GapRecord, ...]:
    """What the simulator lacks and cases that count have reached, each once."""
    by_subject: dict[tuple[object, ...], GapRecord] = {}
    for case in problem.correctness.cases:
        for gap in () if case.waived else case.gaps:
            by_subject.setdefault((gap.kind, _name(gap), gap.file, gap.line), gap)
    return tuple(by_subject.values())


def reached(problem: ProblemResult) -> int:
    """How many of the cases that count have reached something that the simulator lacks."""
    return sum(bool(case.gaps) for case in problem.correctness.cases if not case.waived)


def lack(gap: GapRecord) -> str:
    """What is lacking, without a full stop."""
    if gap.kind is GapKind.CODE:
        return f"Undecided: {gap.subject}"
    return f"Undecided: the simulator cannot run {_name(gap)}"


def remedy(gap: GapRecord) -> str:
    """What its author can do, a sentence."""
    if gap.kind is GapKind.CODE:
        return _OTHER_CODE
    if gap.kind is GapKind.CALL:
        return _PLAIN_ARRAY if any(word in gap.subject for word in _OF_ARRAYS) else _OTHER_CALL
    return _INSTEAD.get(gap.feature, _OTHER_INSTRUCTION)


def _name(gap: GapRecord) -> str:
    """The family of an instruction or its opcode, the name of a call."""
    if gap.kind is not GapKind.INSTRUCTION:
        return gap.subject
    return gap.feature or f"the instruction {next(word for word in gap.subject.split() if word[0] != '@')}"
