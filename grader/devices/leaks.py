"""Whether calls leave device memory behind: each one more than the one before it, of the same sizes.

Memory that a launcher allocates once and keeps for later calls is none of that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from grader.devices.device import ArrayArgument
from grader.records.findings import Finding, Severity, facts

if TYPE_CHECKING:
    from grader.devices.device import Argument, Call
    from grader.simulator.driver import Statistics


class Leaks:
    """What the calls of one session leave behind; it is told once, as a warning if it is ``allowed``."""

    def __init__(self, *, allowed: bool) -> None:
        self._severity = Severity.WARNING if allowed else Severity.ERROR
        self._call: tuple[str, tuple[Argument, ...]] | None = None
        self._held = self._held_bytes = 0
        self._told = False

    def behind(self, call: Call, after: Statistics) -> tuple[Finding, ...]:
        """A finding if ``call`` leaves memory behind, as ``after`` shows, in spite of one like it before."""
        like = (
            call.entry_point,
            tuple(
                replace(argument, data=None) if isinstance(argument, ArrayArgument) else argument
                for argument in call.arguments
            ),
        )
        allocations, nbytes = after.held - self._held, after.held_bytes - self._held_bytes
        again = like == self._call
        self._call, self._held, self._held_bytes = like, after.held, after.held_bytes
        if self._told or not again or allocations <= 0:
            return ()
        self._told = True
        amounts = facts(allocations=allocations, bytes=nbytes)
        return (Finding("leak", "each_call", facts=amounts, severity=self._severity),)
