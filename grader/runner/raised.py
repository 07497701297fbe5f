"""What is said of an exception that a submission's Python code raises."""

from __future__ import annotations

import os
import traceback


class RaisedError(Exception):
    """The code of a Python file raised an exception; the text is for its author."""

    status = "raised"


class UnbegunError(RaisedError):
    """A function of it is still to be written."""

    status = "unbegun"


def raised(error: BaseException, path: str) -> RaisedError:
    """What ``error`` means for the author of the file at ``path``."""
    begun = not isinstance(error, NotImplementedError) or not _frames(error, path)
    return (RaisedError if begun else UnbegunError)(account(error, path))


class RefusedError(RuntimeError):
    """Code in Python asks for what it cannot have; the text says why, and where if that is another line."""


def account(error: BaseException, path: str) -> str:
    """The error in one line, with the innermost line of the student's file at ``path`` in its traceback."""
    file = os.path.basename(path)  # noqa: PTH119
    frames = _frames(error, path)
    position = f"{file}:{frames[-1].lineno}: " if frames else ""
    if isinstance(error, NotImplementedError) and frames:
        return f"{position}{frames[-1].name} is still to be written"
    if isinstance(error, RefusedError):
        return str(error) if str(error).startswith(f"{file}:") else f"{position}{error}"
    message = error.args[0] if isinstance(error, KeyError) and error.args else error  # else it is quoted
    return f"{position}{type(error).__name__}: {message}"


def _frames(error: BaseException, path: str) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
