"""The exit codes of every command."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit code of a command, for scripts."""

    OK = 0  # full marks of what could be measured
    POINTS_LOST = 1
    USAGE = 2
    MACHINE_FAULT = 3  # no compiler, the GPU asked for is absent, an engine is down
    GRADER_BUG = 4
    INTERRUPTED = 130
