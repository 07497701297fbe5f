"""The judge's handle on ``grader-sim``, the process that is the simulated device.

The process owns device memory, executes kernels and keeps what the checkers saw. Programs reach it only
through sockets that :meth:`Simulator.client_socket` hands out. What the judge asks stands in ``_COMMANDS``:
the process tells its own list, made of its C++ types, and must have the same.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Self

from grader.records.errors import DeviceError
from grader.records.findings import Finding, LineCount
from grader.records.gaps import Gap
from grader.records.sentences import sentence
from grader.records.stores import LastStore
from grader.simulator import wire
from grader.simulator.reached import Reached

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from grader.records.coverage import Coverage

LIBRARIES = Path(__file__).parent / "lib"
RUNTIME = LIBRARIES / "libcudart.so.13"
ALL_CONFIGS = {"GRADER_ALL_CONFIGS": "1"}
"""Lets autotuning in Triton run every configuration once."""

SOCKET_VARIABLE = "GRADER_SIM_FD"
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Keeps PyTorch from CUDA: built for it, it would ask the runtime of its process, which is simulated."""

_EXECUTABLE = LIBRARIES / "grader-sim"
_BUILD = (
    "Install the package (python -m pip install .), or in a source tree run: cmake -S . -B cmake-build && "
    "cmake --build cmake-build && cmake --install cmake-build --prefix ."
)
_CHUNK = 64 << 20
_IDLE_SECONDS = 60.0  # without work and without an answer: a fault of the device
_TICK_SECONDS = 0.05
_BUSY_STATES = {"R", "D"}  # of a task, as proc(5) names them
_EXIT_SECONDS = 5.0
_LAST_WORDS = 500  # bytes


class Space(StrEnum):
    """Where an allocation lies and who may touch it."""

    DEVICE = "device"
    MANAGED = "managed"
    PINNED = "pinned"


class Order(StrEnum):
    """In which order blocks and warps run."""

    PROGRAM = "program"
    REVERSED = "reversed"
    SHUFFLED = "shuffled"


@dataclass(frozen=True)
class Options:
    """What is checked and how kernels and streams are scheduled."""

    memcheck: bool = True
    initcheck: bool = True
    racecheck: bool = True
    synccheck: bool = True
    counters: bool = True
    overflow: bool = False  # whether 32-bit arithmetic that decides an address wraps
    coverage: bool = False  # what code reaches; not together with overflow
    instruction_budget: int = 200_000_000  # warp instructions of a launch: some 5 to 20 s
    total_budget: int = 0  # of all launches since ``configure``, 0: unlimited
    progress_budget: int = 0  # of a launch since a warp ended or passed a barrier of its block, 0: unlimited
    order: Order = Order.PROGRAM
    seed: int = 0  # of Order.SHUFFLED
    threads: int = 1
    late_streams: bool = False  # work runs only when something waits for it, the last issued first
    open: bool = False  # programs may bring PTX that was not loaded here
    leak_check: bool = False
    prints: bool = False  # whether what kernels print is output of the program, too


@dataclass(frozen=True)
class Completion:
    """How a launch or a synchronisation ended. ``fault`` is CUDA's name of the error, empty without one."""

    fault: str = ""
    message: str = ""
    printed: str = ""  # by the kernel of a launch; programs' kernels print to ``take_printed``
    timed_out: bool = False

    def __bool__(self) -> bool:
        """Whether everything ran to its end."""
        return not self.fault and not self.timed_out


@dataclass(frozen=True)
class Statistics:
    """What ran since the start or the last reset."""

    launches: int
    nanoseconds: int  # of wall time in the launches
    copies: int
    copied_bytes: int
    host_copies: int  # those of them that came from the host or went there
    fetches: int  # those of these that went there
    held: int  # allocations of programs that are not freed
    held_bytes: int
    crossings: int  # how often work met another stream or the host, which a later moment might change
    kernels: tuple[tuple[str, int], ...]  # launches of each

    @property
    def kernel_seconds(self) -> float:
        """How many seconds of wall time the launches took."""
        return self.nanoseconds / 1e9


@dataclass(frozen=True)
class Element:
    """Some bytes of device memory."""

    address: int
    bytes: int


@dataclass(frozen=True)
class _Outcome:
    """A completion as it travels."""

    code: int  # of cudaError_t
    error: str  # its name
    message: str  # before what the finding tells, if there is one
    finding: Finding | None
    printed: str


_Index = tuple[int, int, int]
_COMMANDS: Mapping[str, tuple[tuple[object, ...], object]] = {
    "describe": ((), str),
    "load": ((str,), int),
    "load_ptx": ((str,), NoneType),
    "allocate": ((int, Space), int),
    "renew": ((int,), NoneType),
    "release": ((int,), NoneType),
    "write": ((int, bytes), NoneType),
    "read": ((int, int), bytes),
    "fill": ((int, int, int), NoneType),
    "launch": ((str, _Index, _Index, tuple[bytes, ...], int, bool), _Outcome),
    "synchronize": ((), _Outcome),
    "take_findings": ((), tuple[Finding, ...]),
    "take_counts": ((), tuple[LineCount, ...]),
    "take_coverage": ((), Reached),
    "take_printed": ((), str),
    "take_unsupported": ((), tuple[Gap, ...]),
    "take_tampering": ((), tuple[str, ...]),
    "take_errors": ((), tuple[tuple[str, int], ...]),
    "configure": ((Options,), NoneType),
    "add_client": ((), NoneType),
    "reset": ((), NoneType),
    "statistics": ((), Statistics),
    "watch": ((tuple[Element, ...],), NoneType),
    "last_stores": ((), tuple[LastStore, ...]),
    "name_allocation": ((int, bool, str), NoneType),
}
"""What the judge asks, by number: the types of the fields and of the answer. See ``server/wire.h``."""
_NUMBERS = {name: number for number, name in enumerate(_COMMANDS)}


def described(commands: Mapping[str, tuple[tuple[object, ...], object]]) -> str:
    """Commands in words, as ``grader-sim`` has them."""
    return "".join(
        f"{name}({','.join(map(wire.name_of, fields))})->{wire.name_of(answer)}\n"
        for name, (fields, answer) in commands.items()
    )


_DESCRIPTION = described(_COMMANDS)


class RefusedError(Exception):
    """The device does not do what was asked; the text says why, and names instruction and line of a gap."""


class Simulator:
    """A simulated device: a context manager that starts the process and ends it.

    Args:
        options: see :class:`Options`; :meth:`configure` changes them.
        device_bytes: size of device memory.
        shared_bytes: size of managed and pinned memory, together.

    Raises:
        DeviceError: here or in any method, if the process cannot be started, died or hangs.
    """

    def __init__(
        self, options: Options | None = None, *, device_bytes: int = 4 << 30, shared_bytes: int = 1 << 30
    ) -> None:
        check_installed()
        socket_here, socket_there = socket.socketpair()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - what it says belongs to its death
        with socket_there:
            self._socket = socket_here
            self._socket.settimeout(_TICK_SECONDS)
            self._process = subprocess.Popen(
                [str(_EXECUTABLE), str(socket_there.fileno()), str(device_bytes), str(shared_bytes)],
                pass_fds=[socket_there.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=self._stderr,
            )
        self._activity = _Activity(self._process.pid)
        try:
            self._check_version()
            self.configure(options or Options())
        except DeviceError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the device. Programs that still use it get errors from then on."""
        self._socket.close()
        try:
            self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._stderr.close()

    def kill(self) -> None:
        """End the device at once, whatever it is doing."""
        self._process.kill()
        self._process.wait()

    def end_launches(self) -> None:
        """End the launch that runs, and all that come; what was found until then can be asked for."""
        self._process.send_signal(signal.SIGUSR1)

    @property
    def alive(self) -> bool:
        """Whether the device takes commands."""
        return self._socket.fileno() >= 0 and self._process.poll() is None

    def working(self) -> bool:
        """Whether the device works now, or would if it had a processor, or has worked since the last time."""
        return self._activity.seen()

    def client_socket(self) -> socket.socket:
        """A fresh socket for one program, which finds its number in the variable ``SOCKET_VARIABLE``."""
        socket_here, socket_there = socket.socketpair()
        with socket_there:
            self._ask("add_client", descriptor=socket_there.fileno())
        return socket_here

    def load(self, path: Path) -> int:
        """Take the device code of an object or library as what programs may run; returns how many PTX images.

        Raises:
            RefusedError: there is none that we can read, and which nvcc option is missing.
        """
        return int(self._ask("load", str(path)))

    def load_ptx(self, text: str) -> None:
        """Take PTX text as what programs may run."""
        self._ask("load_ptx", text)

    def allocate(self, nbytes: int, space: Space = Space.DEVICE) -> int:
        """Address of new memory that holds poison and counts as never written, with poison around it."""
        return int(self._ask("allocate", nbytes, space))

    def name_allocation(self, address: int, name: str, *, constant: bool) -> None:
        """Name an allocation for findings; each store into one that programs may only read is a finding."""
        self._ask("name_allocation", address, constant, name)

    def renew(self, address: int) -> None:
        """Let an allocation hold poison and count as never written again, at the same address."""
        self._ask("renew", address)

    def release(self, address: int) -> None:
        """Free an allocation."""
        self._ask("release", address)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copy to the device."""
        view = memoryview(data).cast("B")
        for at in range(0, len(view), _CHUNK):
            self._ask("write", address + at, view[at : at + _CHUNK])

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy from the device."""
        chunks = range(0, nbytes, _CHUNK)
        parts = [self._ask("read", address + at, min(_CHUNK, nbytes - at)) for at in chunks]
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range."""
        self._ask("fill", address, nbytes, value)

    def launch(
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[bytes],
        *,
        shared: int = 0,
        cooperative: bool = False,
        expired: Callable[[], bool] | None = None,
    ) -> Completion:
        """Run a kernel of what was loaded, for tests; each argument as the bytes that the kernel expects.

        As in ``synchronize``, the device is killed once ``expired`` says so.
        """
        return self._outcome("launch", kernel, grid, block, tuple(args), shared, cooperative, expired=expired)

    def synchronize(self, expired: Callable[[], bool] | None = None) -> Completion:
        """Run all that programs have asked for, which the budgets of ``Options`` bound.

        A program that is asked to run its host functions may never answer: once ``expired`` says so, the
        device is killed, and another has to be opened.
        """
        return self._outcome("synchronize", expired=expired)

    def take_findings(self) -> tuple[Finding, ...]:
        """What the checkers saw since the last time."""
        findings: tuple[Finding, ...] = self._ask("take_findings")
        return findings

    def take_counts(self) -> tuple[LineCount, ...]:
        """Counters per source line since the last time."""
        counts: tuple[LineCount, ...] = self._ask("take_counts")
        return counts

    def take_coverage(self) -> Coverage:
        """What kernels, and host code that is compiled for that, reached since the last time."""
        reached: Reached = self._ask("take_coverage")
        return reached.coverage()

    def take_printed(self) -> str:
        """What kernels of programs printed since the last time, at most 1 MiB."""
        return str(self._ask("take_printed"))

    def unsupported(self) -> tuple[Gap, ...]:
        """Instructions that warps reached, and runtime calls, that we lack, since the last time."""
        gaps: tuple[Gap, ...] = self._ask("take_unsupported")
        return gaps

    def tampering(self) -> tuple[str, ...]:
        """What programs did that no honest program does, since the last time."""
        deeds: tuple[str, ...] = self._ask("take_tampering")
        return deeds

    def runtime_errors(self) -> tuple[tuple[str, int], ...]:
        """Runtime calls that failed, with the code of ``cudaError_t``, since the last time."""
        errors: tuple[tuple[str, int], ...] = self._ask("take_errors")
        return errors

    def watch(self, elements: Sequence[Element]) -> None:
        """From now on keep the last store into each of ``elements``, and forget those watched before."""
        self._ask("watch", tuple(elements))

    def last_stores(self) -> tuple[LastStore, ...]:
        """The last store into each element that is watched, in their order."""
        stores: tuple[LastStore, ...] = self._ask("last_stores")
        return stores

    def statistics(self) -> Statistics:
        """What ran so far."""
        statistics: Statistics = self._ask("statistics")
        return statistics

    def configure(self, options: Options) -> None:
        """Change how later launches are checked and scheduled."""
        self._options = options
        self._ask("configure", options)

    def _check_version(self) -> None:
        """Raise DeviceError if the simulator that is built here takes other commands than this file has."""
        with contextlib.suppress(RefusedError, wire.MalformedError):  # others have no such command
            if self._ask("describe") == _DESCRIPTION:
                return
        raise DeviceError(f"the simulator in {LIBRARIES} is of another version: build it anew. {_BUILD}")

    @property
    def options(self) -> Options:
        """The options in force."""
        return self._options

    def reset(self) -> None:
        """Cut off all programs and forget memory, device code and reports; the options stay."""
        self._ask("reset")

    def _outcome(self, command: str, *fields: object, expired: Callable[[], bool] | None) -> Completion:
        try:
            outcome: _Outcome = self._ask(command, *fields, expired=expired)
        except _ExpiredError:
            self.kill()
            self._socket.close()
            return Completion(timed_out=True)
        fault = outcome.error if outcome.code else ""
        observation = str(sentence(outcome.finding)) if outcome.finding else ""
        return Completion(fault, outcome.message + observation, outcome.printed)

    def _ask(
        self,
        command: str,
        *fields: object,
        descriptor: int | None = None,
        expired: Callable[[], bool] | None = None,
    ) -> wire.Value:
        """One command and its answer.

        Raises:
            RefusedError: the device says no.
            _ExpiredError: no answer before ``expired``, if that is given.
            DeviceError: the device is gone, or hangs.
        """
        if self._socket.fileno() < 0:
            raise DeviceError("the simulator was closed or killed; open a new one")
        expired = expired or self._idle_for_long()
        types, result = _COMMANDS[command]
        parts = wire.pack(types, fields)
        head = struct.pack("<II", 4 + sum(map(len, parts)), _NUMBERS[command])
        try:
            if descriptor is None:
                for part in (head, *parts):
                    self._send(memoryview(part), expired)
            else:
                socket.send_fds(self._socket, [head], [descriptor])
            length, refused = struct.unpack("<II", self._receive(8, expired))
            answer = self._receive(length - 4, expired)
        except OSError as error:
            raise DeviceError(f"{self._death()} ({error})") from error
        if refused:
            raise RefusedError(wire.unpack(str, answer))
        return wire.unpack(result, answer)

    def _send(self, data: memoryview, expired: Callable[[], bool]) -> None:
        while data:
            with contextlib.suppress(TimeoutError):
                data = data[self._socket.send(data) :]
                continue
            if expired():
                raise _ExpiredError

    def _receive(self, nbytes: int, expired: Callable[[], bool]) -> memoryview:
        buffer = bytearray(nbytes)
        view, rest = memoryview(buffer), memoryview(buffer)
        while rest:
            try:
                received = self._socket.recv_into(rest)
            except TimeoutError:
                if expired():
                    raise _ExpiredError from None
                continue
            if received == 0:
                raise ConnectionError("end of stream")
            rest = rest[received:]
        return view

    def _idle_for_long(self) -> Callable[[], bool]:
        """Ends the wait for a device that does nothing, by killing it.

        Raises:
            DeviceError: from what is returned, which is never true.
        """
        activity, idle_since = _Activity(self._process.pid), time.monotonic()

        def hangs() -> bool:
            nonlocal idle_since
            if activity.seen():
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since > _IDLE_SECONDS:
                self.kill()
                raise DeviceError("the simulator hangs and was killed; please report this")
            return False

        return hangs

    def _death(self) -> str:
        try:
            code = self._process.wait(_EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "the simulator closed its socket"
        cause = f"of signal {-code}" if code < 0 else f"with exit code {code}"
        words = ""
        with contextlib.suppress(ValueError):  # closed from another thread
            words = os.pread(self._stderr.fileno(), _LAST_WORDS, 0).decode(errors="replace").strip()
        return f"the simulator died {cause}; please report this{': ' * bool(words)}{words}"


class _ExpiredError(Exception):
    """There was no answer before the caller's patience ended."""


class _Activity:
    """Tells whether a process works, or would if it had a processor.

    On a busy machine a process that answers in turn with another one may run for less than a clock tick
    between two looks, so nanoseconds are counted, where the kernel does.
    """

    def __init__(self, pid: int) -> None:
        self._tasks = Path(f"/proc/{pid}/task")
        self._worked = 0

    def seen(self) -> bool:
        """Whether a thread of it runs, waits for a processor or a disk, or has run since the last time."""
        states, worked = set(), 0
        with contextlib.suppress(OSError):  # it ended
            for task in self._tasks.iterdir():
                state, *fields = (task / "stat").read_text().rpartition(")")[2].split()
                states.add(state)
                worked += int(fields[10]) + int(fields[11])  # clock ticks for the user and for the kernel
                if (precise := task / "schedstat").exists():
                    worked += int(precise.read_text().split()[0])
        before, self._worked = self._worked, worked
        return worked != before or not states.isdisjoint(_BUSY_STATES)


def check_installed(files: Iterable[Path] = (_EXECUTABLE, RUNTIME)) -> None:
    """Raise DeviceError with the command to run if the simulator's binaries were not built."""
    for file in files:
        if not file.is_file():
            raise DeviceError(f"the simulator is not built: {file} is missing. {_BUILD}")
