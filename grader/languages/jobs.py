"""What compile jobs of all languages have in common: their limits, and how one that ended early is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from grader.languages.slots import SlotError
from grader.records.errors import MachineError
from grader.sandbox.sandbox import Ended, Limits

if TYPE_CHECKING:
    import threading

    from grader.sandbox.sandbox import Job, Outcome, Sandbox

_ASLEEP_SECONDS = 60.0  # a compiler waits for its parts, which work, and for the disk, which is no sleep
_GUARD = 20  # wall time by processor time

_FAULTS = {
    Ended.SETUP_ERROR: "The compiler could not be run: {note}",
    Ended.LOST: "The compiler could not be run: {note}",
    Ended.BUSY: "Compiling did not end, as {note}. Grade again when it is less busy.",
}
"""Messages about faults of the machine, by how the job ended."""


class BuildError(MachineError):
    """The machine failed while compiling: never the student's fault."""


def compile_limits(seconds: float = 180, memory_bytes: int = 6 << 30) -> Limits:
    """What compiling one file may use: so many ``seconds`` of processor time, however busy the machine is."""
    return Limits(
        wall_seconds=_GUARD * seconds,
        processor_seconds=seconds,
        asleep_seconds=_ASLEEP_SECONDS,
        address_space_bytes=memory_bytes,
        scratch_bytes=1 << 30,
        output_bytes=4 << 20,
    )


def outcome_of(job: Job, sandbox: Sandbox, given_up: threading.Event | None) -> Outcome:
    """How a compile ended.

    Args:
        job: the compile.
        sandbox: what confines it.
        given_up: set by another thread to end it.

    Raises:
        SlotError: it was given up, so that its outcome says nothing.
    """
    outcome = sandbox.run(job, given_up)
    if given_up is not None and given_up.is_set():
        raise SlotError("interrupted while it was compiled")
    return outcome


def limit_hit(outcome: Outcome) -> str:
    """The limit that the sandbox ended a compile for, in words; empty if it did not.

    Raises:
        BuildError: it was the machine that ended it.
    """
    if outcome.ended in _FAULTS:
        raise BuildError(_FAULTS[outcome.ended].format(note=outcome.note))
    if outcome.ended in (Ended.TIMEOUT, Ended.MEMORY, Ended.OUTPUT, Ended.PROCESSES):
        return f"Compiling was stopped: {outcome.note or outcome.ended}."
    return ""
