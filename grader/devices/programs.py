"""Runs a whole program of a submission in the sandbox: with arguments and files, to its end."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.devices.device import Answer, Status
from grader.devices.patience import Allowance, Patience
from grader.devices.runner import PRINTED_CAP, ended, flooded
from grader.problems.program import STDOUT
from grader.records.errors import DeviceError
from grader.sandbox.live import Drain
from grader.sandbox.sandbox import Ended, Job, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from grader.problems.program import Run
    from grader.sandbox.sandbox import Limits, Outcome, Running, Sandbox

_TICK_SECONDS = 0.05
_STDIN = ".stdin"
_COMMAND = f'exec "$0" "$@" <{_STDIN}'
_SHELL = 128  # added to the number of a signal is the exit code that says so


@dataclass(frozen=True)
class Start:
    """How programs are started on a device.

    Attributes:
        program: the executable.
        runtime: the libcudart that it is loaded with.
        limits: of each run.
        libraries: further ones that it is loaded with.
        inputs: further files and folders that it may read.
        environment: further variables.
        pass_fds: descriptors for the CUDA runtime.
        gpu: whether it may use a GPU.
    """

    program: Path
    runtime: Path
    limits: Limits
    libraries: Sequence[Path] = ()
    inputs: tuple[Path, ...] = ()
    environment: Mapping[str, str] | None = None
    pass_fds: tuple[int, ...] = ()
    gpu: bool = False


def run(
    sandbox: Sandbox, start: Start, wanted: Run, seconds: float, working: Callable[[], bool] = lambda: False
) -> Answer:
    """Run a program to its end; the answer has what it wrote, and its exit code.

    Args:
        sandbox: confines it.
        start: what is started.
        wanted: with what, and which outputs are looked for.
        seconds: of processor time that it may use, on a GPU of device time.
        working: returns whether a simulator works for it.

    Raises:
        DeviceError: the machine cannot start it.
    """
    folders = tuple(dict.fromkeys(library.parent for library in (start.runtime, *start.libraries)))
    job = Job(
        argv=("/bin/sh", "-c", _COMMAND, str(start.program), *wanted.arguments),
        limits=start.limits,
        inputs=(start.program, *folders, *start.inputs),
        outputs=tuple(name for name in (*wanted.expected, *wanted.outputs) if name != STDOUT),
        files={**wanted.files, _STDIN: wanted.stdin},
        environment={
            **wanted.environment,
            "LD_LIBRARY_PATH": ":".join(map(str, folders)),
            **(start.environment or {}),
        },
        pass_fds=start.pass_fds,
        gpu=start.gpu,
    )
    try:
        running = sandbox.start(job)
    except SandboxError as error:
        raise DeviceError(str(error)) from error
    output = Drain(os.dup(running.stdout.fileno()), start.limits.output_bytes)
    patience = Patience(running.usage, Allowance(seconds, on_gpu=start.gpu), working)
    stopped, outcome = _ended(running, output, patience, start.limits)
    stdout = output.content()
    printed = outcome.stderr[:PRINTED_CAP].decode(errors="replace")
    if STDOUT not in wanted.expected:
        printed += stdout[:PRINTED_CAP].decode(errors="replace")
    if stopped is not None:
        return Answer(stopped.status, stopped.message, printed=printed)
    if output.truncated or running.flooded:
        return Answer(Status.LIMIT, flooded(start.limits.output_bytes), printed=printed)
    number = _signal(outcome)
    if outcome.ended is Ended.EXITED and not number:
        files = {**outcome.artefacts, STDOUT: stdout}
        return Answer(
            Status.RETURNED, printed=printed, files=files, exit_code=outcome.code, seconds=outcome.seconds
        )
    if number:
        name = f"{signal.Signals(number).name} ({signal.strsignal(number)})"
        message = f"the program died of {name}: exit code {_SHELL + number}"
        return Answer(Status.CRASHED, message, printed=printed)
    cause = ended(outcome)
    return Answer(cause.status, str(cause), printed=printed)


def _signal(outcome: Outcome) -> int:
    """The signal that a program died of, or that its exit code says as a shell would; 0 if there is none.

    Some sandboxes do not tell the two apart.
    """
    number = outcome.code - (_SHELL if outcome.ended is Ended.EXITED else 0)
    told = outcome.ended in {Ended.EXITED, Ended.SIGNALLED} and number in signal.valid_signals()
    return number if told else 0


def _ended(
    running: Running, output: Drain, patience: Patience, limits: Limits
) -> tuple[Answer | None, Outcome]:
    """How the program ended; first why it was stopped, if it was."""
    try:
        while (outcome := running.wait(_TICK_SECONDS)) is None:
            if output.truncated or running.flooded:
                return Answer(Status.LIMIT, flooded(limits.output_bytes)), running.kill()
            if patience.over():
                assert patience.status is not None
                return Answer(patience.status, patience.message), running.kill()
    except BaseException:
        running.kill()
        raise
    return None, outcome
