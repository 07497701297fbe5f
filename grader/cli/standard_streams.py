"""Standard output and error that tolerate closed pipes and limited encodings."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

from grader.cli.arguments import FaultError
from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_STDERR = 2


def open_standard_streams() -> None:
    """Open standard streams that are closed, as in a daemon: else the next file would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            if nowhere != number:
                os.close(nowhere)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115
    sys.stdout, sys.stderr = _tolerant(sys.stdout), _tolerant(sys.stderr)


def _tolerant(stream: TextIO) -> TextIO:
    buffer = io.BufferedWriter(_TolerantFile(stream.fileno(), "w", closefd=False))
    # A name that the terminal's encoding lacks is shown in escapes; it must not cost the last line.
    errors = "backslashreplace" if stream.errors == "strict" else stream.errors
    return io.TextIOWrapper(buffer, stream.encoding, errors, line_buffering=bool(stream.line_buffering))


class _TolerantFile(io.FileIO):
    """Standard output or error: a closed pipe (``| head -1``) is ignored, a full disk is an error."""

    _lost = False

    def write(self, data: ReadableBuffer, /) -> int:
        """Write the data, or drop it if the reading end of the pipe is closed."""
        size = memoryview(data).nbytes
        if self._lost:
            return size
        try:
            return super().write(data)
        except OSError as error:
            self._lost = True
            if isinstance(error, BrokenPipeError) or self.fileno() == _STDERR:
                return size
            raise FaultError(
                f"standard output cannot be written to: {error.strerror}.", ExitCode.MACHINE_FAULT
            ) from error
