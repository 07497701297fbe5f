"""Runs commands of the grader as a user types them, each in a process of its own that is there at once.

To import PyTorch takes longer than what most commands do. So one process imports the grader, and for each
command a copy of it gets the arguments, the environment, the folder and the streams, and ends as any other
would. Only what Python itself reads when it starts, such as ``PYTHONPATH``, comes too late there.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def run(
    *arguments: object, environment: Mapping[str, str] | None = None, folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What ``python -P -m grader`` does with these arguments in ``folder``.

    Args:
        arguments: of the command.
        environment: further variables, beside those of the tests.
        folder: where it is run; where the tests are, if not given.
    """
    words = [str(argument) for argument in arguments]
    variables = {**os.environ, **(environment or {})}
    with tempfile.TemporaryDirectory() as place:
        printed = [Path(place, name) for name in ("out", "err")]
        streams = [os.devnull, *map(str, printed)]
        server = _server()
        assert server.stdin is not None
        assert server.stdout is not None
        print(
            json.dumps([streams, str(folder or Path.cwd()), variables, words]), file=server.stdin, flush=True
        )
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(words, code, *(path.read_text() for path in printed))


@cache
def _server() -> subprocess.Popen[str]:
    server = subprocess.Popen(
        [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)  # closes its stdin, and it ends
    return server


def _serve() -> None:
    """Run a command for each line of stdin, and print its exit code."""
    import grader.cli.main  # noqa: PLC0415 - by the server alone
    import grader.run.grading  # noqa: F401, PLC0415 - with PyTorch
    from grader.__main__ import main  # noqa: PLC0415

    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _become(*json.loads(line))
            main()
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)  # noqa: T201 - to ``run``


def _become(
    streams: Sequence[str], folder: str, environment: Mapping[str, str], arguments: Sequence[str]
) -> None:
    """Take the streams, the folder, the environment and the arguments of a command."""
    for number, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_CREAT)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["grader", *arguments]


if __name__ == "__main__":
    _serve()
