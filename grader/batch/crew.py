"""The worker processes of a batch: starts them when needed, lends them to threads, replaces and ends them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from grader.processes import leftovers
from grader.processes.threads import ONE_THREAD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

GRACE_SECONDS = 10.0  # time-out for a worker to end its sandboxes
MOST_GROWTH_BYTES = 1 << 30  # a worker that grows by more than this after its first answers has a leak
SETTLED_ANSWERS = 3
SAID_LINES = 20  # last lines of a worker that ended, enough for the end of a traceback
DOING = b'{"doing":'  # how a line begins that is no answer yet
WORKER = (sys.executable, "-m", "grader.batch.worker")


class StoppedError(Exception):
    """The batch is ending, and workers take no more requests."""


class NoWorkerLeftError(Exception):
    """No worker is left, because all were dismissed."""


class EndedError(Exception):
    """A worker ended instead of answering; the message says how, and ``said`` is what it printed last."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(_ended(code))
        self.said = said


@dataclass(frozen=True)
class Station:
    """The part of the machine that a worker uses.

    Attributes:
        gpu: the GPU that it uses, in the form of ``CUDA_VISIBLE_DEVICES``; empty for none.
        kept: the folder in which workers leave results for each other.
        processors: how many of them a grading may count on.
    """

    gpu: str = ""
    kept: Path | None = None
    processors: int = 1

    def options(self) -> tuple[str, ...]:
        """Those of the worker's command line that say so."""
        kept = () if self.kept is None else ("--kept", str(self.kept))
        return (*kept, *(("--processors", str(self.processors)) if self.processors > 1 else ()))


@dataclass(eq=False)
class Worker:
    """A worker process. The first request starts it, and after its end the next request starts it again."""

    station: Station
    command: Sequence[str] = WORKER
    _process: subprocess.Popen[bytes] | None = None
    _lifeline: int = -1
    _said: Path = Path()
    _answers: int = 0
    _settled_bytes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _stopped: bool = False
    _asking: bool = False

    def ask(
        self, request: Mapping[str, Any], told: Callable[[str], None] = lambda _doing: None
    ) -> dict[str, Any]:
        """The answer to ``request``; ``told`` gets what the process says it is doing.

        Raises:
            EndedError: the process ended.
            StoppedError: ``end`` was called with ``for_good``.
            OSError: the process cannot be started.
        """
        with self._lock:
            if self._stopped:
                raise StoppedError
            process = self._process or self._start()
            self._asking = True
        try:
            line = self._exchanged(process, request, told)
        finally:
            self._asking = False
        if not line.endswith(b"\n"):
            code = process.wait()
            failure = StoppedError() if self._stopped else EndedError(code, self._last_words())
            self.end()
            raise failure
        self._watch_memory(process)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def start(self) -> None:
        """Start the process before it is asked, unless it runs already."""
        with self._lock:
            if self._process is None and not self._stopped:
                self._start()

    def _exchanged(
        self, process: subprocess.Popen[bytes], request: Mapping[str, Any], told: Callable[[str], None]
    ) -> bytes:
        """The answer as a line; incomplete or empty if the process ended."""
        assert process.stdin is not None
        assert process.stdout is not None
        os.truncate(self._said, 0)
        with contextlib.suppress(BrokenPipeError, ValueError):  # it ended, or was ended from another thread
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
        line = process.stdout.readline()
        while line.startswith(DOING) and line.endswith(b"\n"):
            told(json.loads(line)["doing"])
            line = process.stdout.readline()
        if not line.endswith(b"\n"):
            process.stdout.close()
        return line

    def _last_words(self) -> str:
        return "\n".join(self._said.read_text(encoding="utf-8", errors="replace").splitlines()[-SAID_LINES:])

    def end(self, *, for_good: bool = False) -> None:
        """End the process and its children; kill it if it still runs after ``GRACE_SECONDS``."""
        with self._lock:
            self._stopped |= for_good
            process, self._process = self._process, None
            if process is None:
                return
            os.close(self._lifeline)
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it did not read everything
            process.stdin.close()
        try:
            process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not self._asking:
            process.stdout.close()
        leftovers.remove(self._said.parent)

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process in a separate process group, so that Ctrl-C reaches only the batch."""
        lifeline, self._lifeline = os.pipe()
        self._said = Path(tempfile.mkdtemp(prefix=leftovers.prefix()), "said")
        try:
            with self._said.open("ab") as stderr:
                self._process = subprocess.Popen(
                    [
                        *self.command,
                        str(lifeline),
                        *self.station.options(),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stderr,
                    env=os.environ | ONE_THREAD | _same_imports() | self._device(),
                    pass_fds=(lifeline,),
                    process_group=0,
                )
        except OSError:
            os.close(self._lifeline)
            raise
        finally:
            os.close(lifeline)
        self._answers = 0
        return self._process

    def _device(self) -> dict[str, str]:
        return {"CUDA_VISIBLE_DEVICES": self.station.gpu} if self.station.gpu else {}

    def _watch_memory(self, process: subprocess.Popen[bytes]) -> None:
        self._answers += 1
        held = _private_bytes(process.pid)
        if self._answers <= SETTLED_ANSWERS:
            self._settled_bytes = held
        elif held > self._settled_bytes + MOST_GROWTH_BYTES:
            self.end()


class Crew:
    """A pool of workers; each is lent to one thread at a time."""

    def __init__(self, stations: Sequence[Station], command: Sequence[str] = WORKER) -> None:
        self._workers = [Worker(station, command) for station in stations]
        self._free = deque(self._workers)
        self._dismissed: set[str] = set()
        self._change = threading.Condition()
        self._stopped = False

    def start(self, count: int) -> None:
        """Start so many processes now, which otherwise start when they are first asked.

        Raises:
            OSError: one cannot be started.
        """
        for worker in self._workers[:count]:
            worker.start()

    def reduced(self, count: int) -> Crew:
        """This crew with at most ``count`` workers, those that run first; nobody has one of them now."""
        with self._change:
            del self._workers[count:]
            kept = set(self._workers)
            self._free = deque(worker for worker in self._free if worker in kept)
        return self

    def __len__(self) -> int:
        return len(self._workers)

    @contextlib.contextmanager
    def worker(self) -> Iterator[Worker]:
        """Wait for a free worker and lend it to this thread.

        Raises:
            StoppedError: ``stop`` was called.
            NoWorkerLeftError: all workers were dismissed.
        """
        with self._change:
            self._change.wait_for(lambda: self._free or self._stopped or self._no_worker_left())
            if self._stopped:
                raise StoppedError
            if not self._free:
                raise NoWorkerLeftError
            worker = self._free.popleft()
        try:
            yield worker
        finally:
            with self._change:
                if worker.station.gpu not in self._dismissed:
                    self._free.appendleft(worker)  # running workers are lent first
                self._change.notify()

    def dismiss(self, gpu: str) -> None:
        """Stop lending the workers of this GPU."""
        with self._change:
            self._dismissed.add(gpu)
            self._free = deque(worker for worker in self._free if worker.station.gpu != gpu)
            self._change.notify_all()

    def _no_worker_left(self) -> bool:
        return all(worker.station.gpu in self._dismissed for worker in self._workers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all workers in parallel, and stop lending them."""
        with self._change:
            self._stopped = True
            self._change.notify_all()
            workers = tuple(self._workers)
        enders = [threading.Thread(target=worker.end, kwargs={"for_good": True}) for worker in workers]
        for ender in enders:
            ender.start()
        for ender in enders:
            ender.join()


def _ended(code: int) -> str:
    if code >= 0:
        return f"the grading process ended with exit code {code}"
    hint = ", as the kernel does when memory runs out," if -code == signal.SIGKILL else ""
    return f"the grading process was killed{hint} by {signal.Signals(-code).name}"


def _private_bytes(pid: int) -> int:
    """How much memory a process has in use for itself, without files that it has mapped."""
    with contextlib.suppress(OSError):
        resident, of_files = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1:3]
        return (int(resident) - int(of_files)) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _same_imports() -> dict[str, str]:
    """The environment variables with which a child process imports the same modules in any working folder."""
    folders = (folder or os.getcwd() for folder in sys.path)  # noqa: PTH109 - a string among strings
    return {"PYTHONPATH": os.pathsep.join(folders), "PYTHONSAFEPATH": "1"}
