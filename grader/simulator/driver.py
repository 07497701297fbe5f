"""The judge's handle on ``grader-sim``, the process that is the simulated device.

The process owns device memory, executes kernels and keeps what the checkers saw. Programs reach it only
through sockets that :meth:`Simulator.client_socket` hands out; the commands' numbers stand in ``protocol.h``.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from grader.records.coverage import Coverage, Launches, Met, Side, Site, Way
from grader.records.errors import DeviceError
from grader.records.findings import Finding, Line, LineCount, Place, Severity
from grader.records.gaps import Gap, GapKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import TracebackType

LIBRARIES = Path(__file__).parent / "lib"
RUNTIME = LIBRARIES / "libcudart.so.13"
ALL_CONFIGS = {"GRADER_ALL_CONFIGS": "1"}
"""Lets autotuning in Triton run every configuration once."""

SOCKET_VARIABLE = "GRADER_SIM_FD"
ON_THE_CPU = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Keeps PyTorch from CUDA: built for it, it would ask the runtime of its process, which is simulated."""

_EXECUTABLE = LIBRARIES / "grader-sim"
_PROTOCOL = 2  # the version of what the judge asks, as in protocol.h
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
_LAUNCHES, _WAYS = struct.Struct("<4Q"), struct.Struct("<2B")
_MET = struct.Struct("<5B4q")
_HOST_SITE = struct.Struct("<3QI4B4q")
_COUNTERS = struct.Struct("<I11Q")  # of a LineCount: the line, and what was counted there


class _Command(IntEnum):
    LOAD = 1
    LOAD_PTX = 2
    ALLOCATE = 3
    RELEASE = 4
    WRITE = 5
    READ = 6
    FILL = 7
    LAUNCH = 8
    SYNCHRONIZE = 9
    TAKE_FINDINGS = 10
    TAKE_COUNTS = 11
    TAKE_PRINTED = 12
    TAKE_UNSUPPORTED = 13
    TAKE_TAMPERING = 14
    TAKE_ERRORS = 15
    CONFIGURE = 16
    ADD_CLIENT = 17
    RESET = 18
    STATISTICS = 19
    SET_CONSTANT = 20
    TAKE_COVERAGE = 21


class Space(IntEnum):
    """Where an allocation lies and who may touch it."""

    DEVICE = 0
    MANAGED = 1
    PINNED = 2


class Order(IntEnum):
    """In which order blocks and warps run."""

    PROGRAM = 0
    REVERSED = 1
    SHUFFLED = 2


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
    kernel_seconds: float  # of wall time in the launches
    copies: int
    copied_bytes: int
    host_copies: int  # those of them that came from the host or went there
    held: int  # allocations of programs that are not freed
    held_bytes: int
    crossings: int  # how often work met another stream or the host, which a later moment might change
    kernels: Mapping[str, int]  # launches of each


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
        ours, theirs = socket.socketpair()
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - what it says belongs to its death
        with theirs:
            self._socket = ours
            self._socket.settimeout(_TICK_SECONDS)
            self._process = subprocess.Popen(
                [str(_EXECUTABLE), str(theirs.fileno()), str(device_bytes), str(shared_bytes)],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=self._stderr,
            )
        self._activity = _Activity(self._process.pid)
        self._options = options or Options()
        try:
            self.configure(self._options)
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
        ours, theirs = socket.socketpair()
        with theirs:
            self._ask(_Command.ADD_CLIENT, b"", descriptor=theirs.fileno())
        return ours

    def load(self, path: Path) -> int:
        """Take the device code of an object or library as what programs may run; returns how many PTX images.

        Raises:
            RefusedError: there is none that we can read, and which nvcc option is missing.
        """
        return _Reader(self._ask(_Command.LOAD, _text(str(path)))).u32()

    def load_ptx(self, text: str) -> None:
        """Take PTX text as what programs may run."""
        self._ask(_Command.LOAD_PTX, _text(text))

    def allocate(self, nbytes: int, space: Space = Space.DEVICE) -> int:
        """Address of new memory that holds poison and counts as never written, with poison around it."""
        return _Reader(self._ask(_Command.ALLOCATE, struct.pack("<QB", nbytes, space))).u64()

    def set_constant(self, address: int, name: str, *, constant: bool) -> None:
        """Say whether programs may only read an allocation: each store there then is a finding."""
        self._ask(_Command.SET_CONSTANT, struct.pack("<QB", address, constant) + _text(name))

    def release(self, address: int) -> None:
        """Free an allocation."""
        self._ask(_Command.RELEASE, struct.pack("<Q", address))

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Copy to the device."""
        view = memoryview(data).cast("B")
        for at in range(0, len(view), _CHUNK):
            part = view[at : at + _CHUNK]
            self._ask(_Command.WRITE, struct.pack("<QQ", address + at, len(part)), part)

    def read(self, address: int, nbytes: int) -> bytes:
        """Copy from the device."""
        parts = []
        for at in range(0, nbytes, _CHUNK):
            answer = self._ask(_Command.READ, struct.pack("<QQ", address + at, min(_CHUNK, nbytes - at)))
            parts.append(answer[8:])
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def fill(self, address: int, value: int, nbytes: int) -> None:
        """Set every byte of a range."""
        self._ask(_Command.FILL, struct.pack("<QQB", address, nbytes, value))

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
        fields = [_text(kernel), struct.pack("<6IQBI", *grid, *block, shared, cooperative, len(args))]
        fields += [struct.pack("<Q", len(arg)) + arg for arg in args]
        return self._outcome(_Command.LAUNCH, b"".join(fields), expired)

    def synchronize(self, expired: Callable[[], bool] | None = None) -> Completion:
        """Run all that programs have asked for, which the budgets of ``Options`` bound.

        A program that is asked to run its host functions may never answer: once ``expired`` says so, the
        device is killed, and another has to be opened.
        """
        return self._outcome(_Command.SYNCHRONIZE, expired=expired)

    def take_findings(self) -> tuple[Finding, ...]:
        """What the checkers saw since the last time."""
        reader = _Reader(self._ask(_Command.TAKE_FINDINGS))
        found = []
        for _ in range(reader.u32()):
            tool, kind, kernel, file = (reader.text() for _ in range(4))
            line, message = reader.u32(), reader.text()
            reader.u64()  # how often: a place is reported once
            severity = tuple(Severity)[reader.u32()]
            places = tuple(_place(reader) for _ in range(reader.u32()))
            found.append(Finding(tool, kind, kernel, file, line, message, severity, places))
        return tuple(found)

    def take_counts(self) -> tuple[LineCount, ...]:
        """Counters per source line since the last time."""
        reader = _Reader(self._ask(_Command.TAKE_COUNTS))
        return tuple(
            LineCount(reader.text(), reader.text(), *reader.numbers(_COUNTERS)) for _ in range(reader.u32())
        )

    def take_coverage(self) -> Coverage:
        """What kernels, and host code that is compiled for that, reached since the last time."""
        reader = _Reader(self._ask(_Command.TAKE_COVERAGE))
        ways: dict[Site, frozenset[Way]] = {}
        comparisons: dict[Site, Met] = {}
        lines: dict[Site, Line] = {}
        launches = {}
        for _ in range(reader.u32()):
            kernel = reader.text()
            launches[kernel] = Launches(*reader.numbers(_LAUNCHES))
            for _ in range(reader.u32()):
                site, lines[site] = reader.site(kernel)
                ways[site] = frozenset(itertools.compress(Way, reader.numbers(_WAYS)))
            for _ in range(reader.u32()):
                site, lines[site] = reader.site(kernel)
                if met := _met(*reader.numbers(_MET)):
                    comparisons[site] = met
        blocks = set()
        for _ in range(reader.u32()):
            *code, number, compares, below, equal, above, a_low, a_high, b_low, b_high = reader.numbers(
                _HOST_SITE
            )
            site = Site("", tuple(code), number)
            met = _met(True, False, below, equal, above, a_low, a_high, b_low, b_high)
            if not compares:
                blocks.add(code[0])
            elif met:
                comparisons[site] = met
        return Coverage(ways, comparisons, frozenset(blocks), launches, lines)

    def take_printed(self) -> str:
        """What kernels of programs printed since the last time, at most 1 MiB."""
        return _Reader(self._ask(_Command.TAKE_PRINTED)).text()

    def unsupported(self) -> tuple[Gap, ...]:
        """Instructions that warps reached, and runtime calls, that we lack, since the last time."""
        reader = _Reader(self._ask(_Command.TAKE_UNSUPPORTED))
        found = []
        for _ in range(reader.u32()):
            kind = tuple(GapKind)[reader.u32()]
            subject, feature, function, file = (reader.text() for _ in range(4))
            found.append(Gap(kind, subject, feature, function, file, reader.u32()))
        return tuple(found)

    def tampering(self) -> tuple[str, ...]:
        """What programs did that no honest program does, since the last time."""
        return self._texts(_Command.TAKE_TAMPERING)

    def runtime_errors(self) -> tuple[tuple[str, int], ...]:
        """Runtime calls that failed, with the code of ``cudaError_t``, since the last time."""
        reader = _Reader(self._ask(_Command.TAKE_ERRORS))
        return tuple((reader.text(), reader.u32()) for _ in range(reader.u32()))

    def statistics(self) -> Statistics:
        """What ran so far."""
        reader = _Reader(self._ask(_Command.STATISTICS))
        launches, nanoseconds, copies, copied_bytes, host_copies = (reader.u64() for _ in range(5))
        held, held_bytes, crossings = reader.u64(), reader.u64(), reader.u64()
        kernels = {reader.text(): reader.u64() for _ in range(reader.u32())}
        seconds = nanoseconds / 1e9
        return Statistics(
            launches, seconds, copies, copied_bytes, host_copies, held, held_bytes, crossings, kernels
        )

    def configure(self, options: Options) -> None:
        """Change how later launches are checked and scheduled.

        Raises:
            DeviceError: the simulator that is built here is of another version than this file.
        """
        self._options = options
        checkers = (
            options.memcheck,
            options.initcheck,
            options.racecheck,
            options.synccheck,
            options.counters,
            options.overflow,
            options.coverage,
        )
        schedule = struct.pack(
            "<3QBQI",
            options.instruction_budget,
            options.total_budget,
            options.progress_budget,
            options.order,
            options.seed,
            options.threads,
        )
        policy = struct.pack("<3B", options.late_streams, options.open, options.leak_check)
        try:
            version = bytes(self._ask(_Command.CONFIGURE, struct.pack("<7B", *checkers) + schedule + policy))
        except RefusedError:  # it takes other fields
            version = b""
        if version != struct.pack("<I", _PROTOCOL):
            raise DeviceError(f"the simulator in {LIBRARIES} is of another version: build it anew. {_BUILD}")

    @property
    def options(self) -> Options:
        """The options in force."""
        return self._options

    def reset(self) -> None:
        """Cut off all programs and forget memory, device code and reports; the options stay."""
        self._ask(_Command.RESET)

    def _texts(self, command: _Command) -> tuple[str, ...]:
        reader = _Reader(self._ask(command))
        return tuple(reader.text() for _ in range(reader.u32()))

    def _outcome(
        self, command: _Command, fields: bytes = b"", expired: Callable[[], bool] | None = None
    ) -> Completion:
        try:
            reader = _Reader(self._ask(command, fields, expired=expired))
        except _ExpiredError:
            self.kill()
            self._socket.close()
            return Completion(timed_out=True)
        code, name, message = reader.u32(), reader.text(), reader.text()
        printed = reader.text() if command is _Command.LAUNCH else ""
        return Completion(name if code else "", message, printed)

    def _ask(
        self,
        command: _Command,
        fields: bytes = b"",
        data: memoryview | None = None,
        *,
        descriptor: int | None = None,
        expired: Callable[[], bool] | None = None,
    ) -> memoryview:
        """One command and its answer.

        Raises:
            RefusedError: the device says no.
            _ExpiredError: no answer before ``expired``, if that is given.
            DeviceError: the device is gone, or hangs.
        """
        if self._socket.fileno() < 0:
            raise DeviceError("the simulator was closed or killed; open a new one")
        expired = expired or self._idle_for_long()
        frame = struct.pack("<II", 4 + len(fields) + (len(data) if data is not None else 0), command) + fields
        try:
            if descriptor is None:
                self._send(memoryview(frame), expired)
            else:
                socket.send_fds(self._socket, [frame], [descriptor])
            if data is not None:
                self._send(data, expired)
            length, refused = struct.unpack("<II", self._receive(8, expired))
            answer = self._receive(length - 4, expired)
        except OSError as error:
            raise DeviceError(f"{self._death()} ({error})") from error
        if refused:
            raise RefusedError(_Reader(answer).text())
        return answer

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
                got = self._socket.recv_into(rest)
            except TimeoutError:
                if expired():
                    raise _ExpiredError from None
                continue
            if got == 0:
                raise ConnectionError("end of stream")
            rest = rest[got:]
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


def _place(reader: _Reader) -> Place:
    innermost, *calls = (Line(reader.text(), reader.u32()) for _ in range(reader.u32()))
    return Place(innermost.file, innermost.line, tuple(calls))


class _Reader:
    """Fields of an answer, in order."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def u32(self) -> int:
        return int(self._number("<I", 4))

    def u64(self) -> int:
        return int(self._number("<Q", 8))

    def numbers(self, layout: struct.Struct) -> tuple[int, ...]:
        values: tuple[int, ...] = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return values

    def site(self, kernel: str) -> tuple[Site, Line]:
        """A place in a kernel: which instruction, and its line."""
        site = Site(kernel, (self.u32(),))
        return site, Line(self.text(), self.u32())

    def text(self) -> str:
        length = self.u64()
        self._at += length
        return bytes(self._data[self._at - length : self._at]).decode(errors="replace")

    def _number(self, layout: str, nbytes: int) -> int:
        value: int = struct.unpack_from(layout, self._data, self._at)[0]
        self._at += nbytes
        return value


def _met(  # the fields in the order of protocol.h
    signed: int, equality: int, below: int, equal: int, above: int, *extremes: int
) -> Met | None:
    """What a comparison has met; None if it was not made."""
    sides = frozenset(itertools.compress(Side, (below, equal, above)))
    if not sides:
        return None
    a_low, a_high, b_low, b_high = extremes if signed else (one % (1 << 64) for one in extremes)
    return Met(sides, (a_low, a_high), (b_low, b_high), bool(equality))


def _text(words: str) -> bytes:
    encoded = words.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def check_installed(files: Iterable[Path] = (_EXECUTABLE, RUNTIME)) -> None:
    """Raise DeviceError with the command to run if the simulator's binaries were not built."""
    for file in files:
        if not file.is_file():
            raise DeviceError(f"the simulator is not built: {file} is missing. {_BUILD}")
