"""Runs a command within a time limit, keeps what it prints, and measures what it takes."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Step:
    """A command that was run, as a user would type it, and what it took."""

    command: str
    code: int
    seconds: float  # of wall time
    processor_seconds: float  # of all its processes


def run(
    words: Sequence[str], command: str, log: Path, seconds: int, environment: Mapping[str, str] | None = None
) -> Step:
    """Run ``words``, which stand for ``command``; exit code 124 if ``seconds`` of wall time are not enough.

    What it prints is added to ``log``.
    """
    began = time.monotonic()
    with log.open("ab") as file:
        file.write(f"$ {command}\n".encode())
        file.flush()
        process = subprocess.Popen(
            ["timeout", "--kill-after=10", str(seconds), *words],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        _, status, used = os.wait4(process.pid, 0)  # with the time of those that it has waited for
        process.returncode = os.waitstatus_to_exitcode(status)
    return Step(command, process.returncode, time.monotonic() - began, used.ru_utime + used.ru_stime)
