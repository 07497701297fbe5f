"""The judge's side of a runner: starts it in a sandbox, sends requests, and reports how it ended."""

from __future__ import annotations

import io
import os
import py_compile
import signal
import sys
import tempfile
import threading
import zipfile
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from grader.devices.device import Answer, Form, LoadError, Memory, Status
from grader.devices.patience import Allowance, Patience
from grader.devices.stack import where
from grader.processes import leftovers
from grader.records.errors import DeviceError
from grader.records.mangled import demangled
from grader.runner import shared
from grader.runner.protocol import Bytes, Channel, ClosedError, ExpiredError, Frame, Header, MalformedError
from grader.runner.witness import VARIABLE
from grader.sandbox.sandbox import Ended, Job, Limits, SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from grader.devices.device import ModelProgram
    from grader.sandbox.sandbox import Image, Outcome, Sandbox

START_SECONDS = 60.0  # processor time for loading the library; importing PyTorch or CuPy takes longest
GONE_SECONDS = 60.0  # wall time between the end of the channel and the end of the process
WITNESS_SECONDS = 2.0  # wall time for a runner, before it is killed, to write where its code is
SESSION_SECONDS = 24 * 3600.0  # wall time, a bound for the sandbox; each call has its own limits
PRINTED_CAP = 64 << 10
ARCHIVE = "runner.zip"
LAUNCH_BYTES = 1 << 30  # of the arrays of a launch that the judge makes
NO_MEMORY = (
    "the GPU has too little free memory for the grader's own arrays: end other programs that use it, and "
    "check whether the submission frees the memory that it allocates"
)

LIMITS = Limits(wall_seconds=SESSION_SECONDS, data_bytes=2 << 30)
"""The limits of a session unless the assignment sets others."""


def flooded(limit: int) -> str:
    """The message about a call that prints more than ``limit`` bytes."""
    return f"more than {limit / 2**20:g} MiB of printed output"


class RunnerError(Exception):
    """The runner cannot be used any more: ``status`` and the message say why, ``printed`` is its output."""

    def __init__(self, status: Status, message: str, printed: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.printed = printed

    @property
    def answer(self) -> Answer:
        """The answer to the call during which this error occurred."""
        return Answer(self.status, str(self), printed=self.printed)


@dataclass(frozen=True)
class Start:
    """How to start a runner.

    Attributes:
        libraries: shared libraries with the functions that each must export.
        runtime: path of the libcudart that it is loaded with.
        gpu: whether the runner imports CuPy, found in ``packages``.
        packages: folders of Python packages that the runner may import.
        limits: limits of the whole session.
        inputs: further files and folders that the runner may read.
        environment: further environment variables.
        pass_fds: file descriptors for the CUDA runtime.
        program: a PyTorch program that calls the libraries; PyTorch is then found in ``packages``.
        script: a Python file with kernels, and the functions that it must have.
        form: how these are called.
        extensions: the modules of C++ that it builds: of each the library, by the key of its call.
        kernels: the linker's names of the kernels in these.
        memory: kind of the pointers that this program passes to the entry points.
        through: a program, with its options, that starts the runner.
    """

    libraries: Mapping[Path, tuple[str, ...]]
    runtime: Path
    gpu: bool = False
    packages: tuple[Path, ...] = ()
    limits: Limits = LIMITS
    inputs: tuple[Path, ...] = ()
    environment: Mapping[str, str] | None = None
    pass_fds: tuple[int, ...] = ()
    program: ModelProgram | None = None
    script: tuple[Path, tuple[str, ...]] | None = None
    form: Form = field(default_factory=Form)
    extensions: Mapping[str, Path] = field(default_factory=dict)
    kernels: tuple[str, ...] = ()
    memory: Memory = Memory.DEVICE
    through: tuple[str, ...] = ()

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The functions of all libraries."""
        return tuple(name for names in self.libraries.values() for name in names)

    @property
    def python(self) -> Path | None:
        """The Python file of the submission, if the runner loads one."""
        if self.script is not None:
            return self.script[0]
        return None if self.program is None else self.program.file


@cache
def packed(program: ModelProgram | None = None, *, triton: bool = False) -> bytes:
    """The runner as a zip archive: only the files that it needs from the grader and from the assignment.

    The grader's are there compiled, too, so that runners start sooner; another Python takes the source.
    """
    folder = Path(__file__).parents[1] / "runner"
    archive = io.BytesIO()
    with (
        zipfile.ZipFile(archive, "w") as files,
        tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as scratch,
    ):
        files.writestr("grader/__init__.py", "")
        parts = ("*.py", "pytorch/*.py", "triton/*.py") if triton else ("*.py",)
        for path in sorted(path for part in parts for path in folder.glob(part)):
            name = f"grader/runner/{path.relative_to(folder).as_posix()}"
            files.write(path, name)
            files.write(_compiled(path, f"{ARCHIVE}/{name}", Path(scratch, "compiled")), f"{name}c")
        if program is not None:
            files.write(program.harness, "harness.py")
            for path in program.given:
                files.write(path, path.name)
        files.writestr("__main__.py", "from grader.runner.server import main\n\nmain()\n")
    return archive.getvalue()


def _compiled(path: Path, shown: str, file: Path) -> Path:
    """Compile the module at ``path``, which tracebacks call ``shown``, to ``file``, valid for good."""
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(path), str(file), shown, doraise=True, invalidation_mode=unchecked)
    return file


def python() -> tuple[Path, tuple[Path, ...]]:
    """The base interpreter, outside of any virtual environment, and the folders that it needs."""
    prefix = Path(sys.base_prefix)
    return prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}", (prefix,)


def interpreter(image: Image | None, *, packages: bool) -> tuple[Path, tuple[Path, ...]]:
    """The interpreter of a job and the folders that it needs.

    The ``image``'s, or ours if the job needs our ``packages`` and the image's cannot load them.

    Raises:
        DeviceError: ours cannot run in the image.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if image is None:
        return python()
    if not packages or image.python_version == version:
        return image.python, ()
    program, folders = python()
    if program.is_relative_to("/usr"):
        raise DeviceError(
            f"The image has Python {image.python_version}, but the packages here are for Python {version}.\n"
            f"Build the image on a base with Python {version}, or use --sandbox bubblewrap."
        )
    return program, folders


class Builds(Protocol):
    """Answers a runner that asks for a kernel during a call."""

    def __call__(self, request: Header, closed: threading.Event) -> tuple[Header, Bytes]:
        """The header and payload of the answer; the event says that the runner was closed meanwhile."""

    def close(self) -> None:
        """End what builds kernels."""


class Runner:
    """A live runner with its library loaded."""

    def __init__(
        self,
        sandbox: Sandbox,
        start: Start,
        working: Callable[[], bool] = lambda: False,
        builds: Builds | None = None,
        launches: Callable[[Frame], tuple[Header, Sequence[Bytes]]] | None = None,
        using: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Start the runner and load what it calls.

        Args:
            sandbox: confines the runner.
            start: describes what the runner loads.
            working: returns whether the runner is waiting for a simulator that works for it.
            builds: answers a runner that asks for a kernel during a call, and is closed with it.
            launches: returns the answer, header and payload, to one that asks for a launch, or raises
                RunnerError to end it.
            using: makes a context in which it may use the device, to load what it calls. What it imports
                before that takes longer, and uses none.

        Raises:
            LoadError: something cannot be loaded or lacks an entry point.
            DeviceError: the machine cannot start the runner.
            RunnerError: the runner ended while loading; UNSUPPORTED if the CUDA runtime lacks a function that
                the library calls.
        """
        program, folders = interpreter(sandbox.image, packages=bool(start.packages))
        memory = os.memfd_create("witness")
        payloads = shared.make()
        job = Job(
            argv=(*start.through, str(program), "-I", "-S", "-B", ARCHIVE),
            limits=start.limits,
            inputs=(
                *start.libraries,
                *((start.python,) if start.python else ()),
                start.runtime.parent,
                *folders,
                *start.packages,
                *start.inputs,
            ),
            files={ARCHIVE: packed(start.program, triton=start.script is not None)},
            environment={
                "LD_LIBRARY_PATH": str(start.runtime.parent),
                VARIABLE: str(memory),
                shared.VARIABLE: str(payloads),
                **(start.environment or {}),
            },
            pass_fds=(*start.pass_fds, memory, payloads),
            gpu=start.gpu,
            witness=memory,
        )
        try:
            self._running = sandbox.start(job)
            view = shared.mapped(payloads)
        except SandboxError as error:
            raise DeviceError(str(error)) from error
        finally:
            os.close(memory)
            os.close(payloads)
        self._ended: RunnerError | None = None
        self._null: tuple[str, str] | None = None
        self._closed = threading.Event()
        self._flooded = flooded(start.limits.output_bytes)
        self._start = start
        self._working = working
        self._builds = builds
        self._launches = launches
        self._channel = Channel(self._running.stdout.fileno(), self._running.stdin.fileno(), view)
        if start.gpu:  # the cases that are timed are large
            self._channel.widen()
        request = {
            "libraries": {str(path): names for path, names in start.libraries.items()},
            "runtime": str(start.runtime),
            "gpu": start.gpu and start.program is None,  # PyTorch creates the context for a program
            "model": str(start.program.file) if start.program else None,
            "trains": start.program is not None and start.program.trains,
            "script": [str(start.script[0]), start.script[1]] if start.script else None,
            "form": asdict(start.form),
            "extensions": {name: str(path) for name, path in start.extensions.items()},
            "kernels": start.kernels,
            "memory": start.memory.value,
            "packages": [str(path) for path in start.packages],
            "printed_most": start.limits.output_bytes,
        }
        self._begin("import", request)
        with using():
            self._begin("load", request)

    def _begin(self, operation: str, request: Mapping[str, Any]) -> None:
        start = self._start
        reply = self.ask({"operation": operation, **request}, (), 0, START_SECONDS).header
        if reply["status"] == "loaded":
            return
        self.close()
        symbol, message = str(reply.get("symbol", "")), str(reply.get("message", ""))
        if symbol and symbol not in start.entry_points and symbol.startswith(("cuda", "__cuda")):
            raise RunnerError(Status.UNSUPPORTED, f"{start.runtime.name} here has no {symbol}")
        if reply["status"] == "cuda error":
            raise DeviceError(message)
        raise LoadError(message)

    def ask(
        self,
        request: Mapping[str, Any],
        payload: Sequence[Bytes],
        reply_bytes: int,
        seconds: float,
        using: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Frame:
        """Send a request and return the answer, whose payload is empty or has exactly ``reply_bytes`` bytes.

        Args:
            request: the header.
            payload: its bytes. They are in place before ``using`` is entered, as far as they can be.
            reply_bytes: of the answer. They are copied once ``using`` is left.
            seconds: of processor time, on a GPU of device time, that the runner may use.
            using: makes a context in which the runner may use the device.

        Raises:
            RunnerError: the runner ended, does not answer, or gives an answer that is not valid.
        """
        if self._ended is not None:
            raise self._ended
        self._null = None
        most = max(reply_bytes, LAUNCH_BYTES) if self._launches else reply_bytes
        placed = self._placed(payload)
        patience: Patience | None = None
        try:
            with using():
                patience = self.patience(seconds)
                frame = self._channel.exchange(request, placed, most, patience.over)
                while (question := self._question(frame, patience, seconds)) is not None:
                    header, pieces, patience = question
                    frame = self._channel.exchange(header, self._placed(pieces), most, patience.over)
            if len(frame.payload) not in (0, reply_bytes):
                raise MalformedError("the answer has the wrong size")  # noqa: TRY301
            header = _checked(frame.header)
            self._ended = self._ending(header)
            if self._ended is None:
                return replace(_kept(frame), header=header)
            self._end()
        except MalformedError as error:
            self._ended = RunnerError(Status.UNTRUSTED, f"forged channel: {error}", _printed(self._end()))
        except ExpiredError:
            assert patience is not None
            self._ended = self.expired(patience)
        except RunnerError as error:
            self._end()
            self._ended = error
        except ClosedError:
            self._ended = self._with_null(ended(self._running.wait(GONE_SECONDS) or self._end()))
        raise self._ended

    def _question(
        self, frame: Frame, patience: Patience, seconds: float
    ) -> tuple[Header, Sequence[Bytes], Patience] | None:
        """The answer to a runner that asks something in the middle of a call, and how long it may go on."""
        question = frame.header.get("status")
        if question == "build" and self._builds is not None:
            header, content = self._builds(frame.header, self._closed)
            return header, (content,), self.patience(seconds)  # the runner waited meanwhile
        if question == "launch" and self._launches is not None:
            answer, pieces = self._launches(_kept(frame))
            patience.wake()
            return answer, pieces, patience
        if question == "null":
            self._null = str(frame.header.get("returned_by")), str(frame.header.get("passed_to"))
            return {}, (), patience
        return None

    def _with_null(self, error: RunnerError) -> RunnerError:
        """``error``, with the null pointer that a function got from an earlier one before it crashed."""
        if self._null is None or error.answer.status is not Status.CRASHED:
            return error
        if not {*self._null} <= {*self._start.entry_points}:  # what a runner says is not trusted
            return error
        returning, function = map(demangled, self._null)
        message = f"{error.answer.message}: {function} was given the null pointer that {returning} returned"
        return RunnerError(Status.CRASHED, message, error.answer.printed)

    def _placed(self, payload: Sequence[Bytes]) -> Sequence[Bytes]:
        """``payload`` in shared memory, where it has room there; other threads run meanwhile."""
        pieces = [np.frombuffer(piece, np.uint8) for piece in payload if len(piece)]
        room = self._channel.room_shared(sum(piece.size for piece in pieces))
        if room is None:
            return payload
        np.concatenate(pieces, out=np.frombuffer(room, np.uint8))
        return [room]

    def patience(self, seconds: float) -> Patience:
        """The time-out of a call that may take ``seconds`` of processor time, or on a GPU of device time."""
        return Patience(self._running.usage, Allowance(seconds, on_gpu=self._start.gpu), self._working)

    def expired(self, patience: Patience) -> RunnerError:
        """End the runner after a time-out; return the reason, and where its code was."""
        assert patience.status is not None
        position = self._position(patience) if patience.status is Status.TIMEOUT else ""
        message = f"{patience.message} ({position})" if position else patience.message
        return RunnerError(patience.status, message, _printed(self._end()))

    def _position(self, patience: Patience) -> str:
        """Where the host code is that takes too long."""
        start = self._start
        trace = self._running.witness(WITNESS_SECONDS)
        return where(trace, start.libraries, start.entry_points, asleep=patience.asleep, model=start.python)

    def _ending(self, header: Header) -> RunnerError | None:
        """The error if an answer with this header ends the session, otherwise None."""
        message, printed = header["message"], header["printed"]
        if header["status"] == "no memory":
            return RunnerError(Status.LOST, f"{NO_MEMORY} ({message})", printed)
        if header["status"] == "unsupported":
            return RunnerError(Status.UNSUPPORTED, message, printed)
        if header.get("flooded") or self._running.flooded:
            return RunnerError(Status.LIMIT, self._flooded, printed)
        return None

    def finish(self, seconds: float) -> str:
        """Let the runner end by itself, and return what it and the program that started it wrote to stderr.

        Raises:
            RunnerError: they did not end within ``seconds``.
        """
        self._ended = RunnerError(Status.LOST, "the session is closed")
        self._running.stdin.close()
        outcome = self._running.wait(seconds)
        if outcome is None:
            message = f"it did not end within {seconds:g} s"
            raise RunnerError(Status.TIMEOUT, message, _printed(self._end()))
        return outcome.stderr.decode(errors="replace")

    def close(self) -> None:
        """End the runner and everything that it started."""
        self._closed.set()
        self._ended = self._ended or RunnerError(Status.LOST, "the session is closed")
        self._end()

    def _end(self) -> Outcome:
        if self._builds is not None:
            self._builds.close()
        self._channel.forget_shared()
        return self._running.kill()


def _kept(frame: Frame) -> Frame:
    """``frame`` with a payload of which the runner has no copy, so that all who look at it see the same."""
    if isinstance(frame.payload, bytearray):
        return frame
    return replace(frame, payload=np.frombuffer(frame.payload, np.uint8).copy().data)


def ended(outcome: Outcome) -> RunnerError:
    """The error for a runner that ended before it answered."""
    printed = _printed(outcome)
    if outcome.ended is Ended.EXITED:
        message = f"the code ended its process with exit code {outcome.code} instead of returning"
        return RunnerError(Status.EXITED, message, printed)
    if outcome.ended is Ended.SIGNALLED:
        return RunnerError(Status.CRASHED, f"the code died of {_signal(outcome.code)} on the host", printed)
    if outcome.ended is Ended.TIMEOUT:
        return RunnerError(Status.TIMEOUT, outcome.note or "time limit", printed)
    if outcome.ended in (Ended.MEMORY, Ended.OUTPUT, Ended.PROCESSES):
        return RunnerError(Status.LIMIT, outcome.note or f"limit of {outcome.ended.value} reached", printed)
    return RunnerError(Status.LOST, outcome.note or f"the sandbox reports: {outcome.ended.value}", printed)


def _signal(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"signal {number}"


def _printed(outcome: Outcome) -> str:
    return outcome.stderr[:PRINTED_CAP].decode(errors="replace")


def _checked(header: Header) -> Header:
    texts = {key: header.get(key, "") for key in ("status", "message", "printed")}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise MalformedError(f"{key} is not a text")
    statuses = {
        "loaded",
        "unloadable",
        "unsupported",
        "returned",
        "raised",
        "unbegun",
        "cuda error",
        "no memory",
    }
    if texts["status"] not in statuses:
        raise MalformedError("an unknown status")
    return {**header, **{key: encodable(text)[:PRINTED_CAP] for key, text in texts.items()}}


def encodable(text: str) -> str:
    """``text`` without the lone surrogates that JSON may contain, because a record could not be written."""
    return text.encode(errors="replace").decode()
