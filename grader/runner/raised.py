"""What is said of an exception that a submission's Python code raises."""

from __future__ import annotations

import os
import traceback


class RaisedError(Exception):
    """The code of a Python file raised an exception; the text is for its author."""


def account(error: BaseException, path: str) -> str:
    """The error in one line, with the innermost line of the student's file at ``path`` in its traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    position = f"{os.path.basename(path)}:{frames[-1].lineno}: " if frames else ""  # noqa: PTH119
    if isinstance(error, NotImplementedError) and frames:
        return f"{position}{frames[-1].name} is still to be written"
    return f"{position}{type(error).__name__}: {error}"
