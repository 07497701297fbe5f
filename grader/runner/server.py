"""The runner's main loop: hides its channel from the student's code, drops rights and answers requests."""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import os
import resource
import select
import sys
import time
from typing import TYPE_CHECKING, Any

from grader.runner import shared, witness
from grader.runner.host import HostMemory
from grader.runner.library import (
    CudaError,
    NoMemoryError,
    Runtime,
    UnloadableError,
    UnsupportedError,
    argument,
    load,
)
from grader.runner.packages import Packages
from grader.runner.protocol import Channel, ClosedError, Frame, Header
from grader.runner.raised import RaisedError
from grader.runner.staging import Staging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from grader.runner.gpu import Gpu
    from grader.runner.triton.launchers import Launchers

FRAME_CAP = 8 << 30
PRINTED_CAP = 64 << 10
PR_SET_NO_NEW_PRIVS = 38
SETS_OF_STREAMS = 2  # of the calls whose arrays come and go on their streams, in turn
QUEUED_CALLS = 8  # behind one of these: a launcher may have room for the numbers of a few calls, in turn


class Printed:
    """The standard output of the student's code: a pipe that drops text that does not fit."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.dup2(self._writing, 1)
        self._libc = ctypes.CDLL(None)

    def hold(self, most: int) -> None:
        """Make room for ``most`` bytes; a pipe of an unprivileged user can have 1 MiB at most."""
        fcntl.fcntl(self._writing, fcntl.F_SETPIPE_SZ, most)

    def take(self) -> tuple[str, bool]:
        """The text printed since the last call, ``PRINTED_CAP`` bytes at most; whether it filled the pipe."""
        self._libc.fflush(None)
        room = select.poll()
        room.register(self._writing, select.POLLOUT)
        full = not room.poll(0)
        text = bytearray()
        while True:
            try:
                piece = os.read(self._reading, 1 << 16)
            except BlockingIOError:
                break
            if not piece:
                break
            text += piece[: PRINTED_CAP - len(text)]
        return text.decode(errors="replace"), full


def take_channel() -> Channel:
    """The channel on private descriptors; stdin becomes empty, and other inherited descriptors are closed.

    Memory that the judge shares is mapped, and its descriptor closed like the others.
    """
    number = os.environ.pop(shared.VARIABLE, "")
    memory = shared.mapped(int(number)) if number else None
    reading, writing = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (0, 1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    numbers = (os.environ.get(variable) for variable in ("GRADER_SIM_FD", witness.VARIABLE))
    needed = {0, 1, 2, reading, writing, *(int(number) for number in numbers if number)}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        if int(name) not in needed:
            try:
                os.close(int(name))
            except OSError:  # the descriptor that listed this folder
                continue
    return Channel(reading, writing, memory)


def drop_rights() -> None:
    """Forbid new privileges and core files before any untrusted code runs (constructors run on loading)."""
    ctypes.CDLL(None).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Server:
    """Answers one request after the other, each operation with its own method."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._nonce = ""
        self._printed = Printed()
        self._host = HostMemory()
        self._streams: list[list[int]] = [[] for _ in range(1 + SETS_OF_STREAMS)]
        self._staged = 0  # calls whose arrays come and go on their streams
        self._gpu: Gpu | None = None
        self._launchers: Launchers | None = None

    def serve(self) -> None:
        """Answer requests until the judge closes the channel."""
        while True:
            try:
                header, payload = self.answer(self._receive())
                self._send(header, payload)
            except ClosedError:
                return

    def _receive(self) -> Frame:
        request = self._channel.receive(FRAME_CAP)
        self._nonce = request.header["nonce"]
        return request

    def _send(self, header: Header, payload: Sequence[Any]) -> None:
        self._channel.send({**header, "nonce": self._nonce, "at": time.monotonic()}, payload)

    def ask(self, header: Header, payload: Sequence[Any] = ()) -> Frame:
        """The judge's answer to a question in the middle of a request."""
        self._send(header, payload)
        return self._receive()

    def answer(self, request: Frame) -> tuple[Header, list[Any]]:
        """The header and payload that answer ``request``."""
        operations = {
            "import": self._import,
            "load": self._load,
            "call": self._call,
            "time": self._time,
            "model": self._run_model,
        }
        operation = operations[request.header["operation"]]
        payload: list[Any] = []
        try:
            header, payload = operation(request.header, memoryview(request.payload))
        except CudaError as error:
            header = {"status": "cuda error", "message": str(error)}
        except NoMemoryError as error:
            header = {"status": "no memory", "message": str(error)}
        except UnsupportedError as error:
            header = {"status": "unsupported", "message": str(error)}
        except RaisedError as error:
            header = {"status": error.status, "message": str(error)}
        except UnloadableError as error:
            header = {"status": "unloadable", "message": error.text, "symbol": error.symbol}
        printed, flooded = self._printed.take()
        return {**header, "printed": printed, "flooded": flooded}, payload

    def _import(self, header: Header, _: memoryview) -> tuple[Header, list[Any]]:
        """Import packages, which takes seconds and uses no device."""
        self._printed.hold(header["printed_most"])
        self._runtime = Runtime(header["runtime"])
        if header["gpu"]:
            sys.meta_path.append(Packages(header["packages"]))
            importlib.import_module("cupy")
        if header["model"]:
            gc.disable()  # modules stay, and to look for garbage among those of PyTorch takes time
            sys.path += {os.path.dirname(package): None for package in header["packages"]}  # noqa: PTH120
            importlib.import_module("torch")
            importlib.import_module("torch.fx.experimental.symbolic_shapes")  # a backward pass needs it
            if header["trains"]:  # an optimizer imports it with its first parameters
                importlib.import_module("torch._dynamo")
        return {"status": "loaded"}, []

    def _load(self, header: Header, _: memoryview) -> tuple[Header, list[Any]]:
        if header["gpu"]:
            self._gpu = importlib.import_module("grader.runner.gpu").Gpu(self._runtime)
            self._timer = importlib.import_module("grader.runner.timing").Timer(self._gpu)
        self._functions: dict[str, Any] = {}
        for path, entry_points in header["libraries"].items():
            self._functions |= load(path, entry_points)
        if header["script"]:
            path, names = header["script"]
            sys.path += {os.path.dirname(package): None for package in header["packages"]}  # noqa: PTH120
            launchers = importlib.import_module("grader.runner.triton.launchers")
            form = importlib.import_module("grader.runner.triton.form").Form(**header["form"])
            modules = header["extensions"], header["kernels"]
            self._launchers = launchers.Launchers(path, self.ask, self._gpu, form, *modules)
            self._functions |= self._launchers.functions(names)
        if header["model"]:
            os.environ["KERNEL_LIBRARIES"] = ":".join(header["libraries"])
            os.environ["KERNEL_MEMORY"] = header["memory"]
            harness = importlib.import_module("harness")
            self._model = importlib.import_module("grader.runner.model").Model(
                header["model"], harness, self.ask
            )
            gc.freeze()
            gc.enable()
        return {"status": "loaded"}, []

    def _stream(self) -> int:
        return self._gpu.stream() if self._gpu else self._runtime.stream()

    def _handles(self, header: Header) -> list[int]:
        """The streams of a call: separate ones, or the default stream for a launcher with host pointers.

        Such a launcher may copy results back before it synchronises. This is correct on the default stream,
        which the original course passed to it. Calls whose arrays come and go on their streams get other ones
        than the calls before: a launcher may keep none of them.
        """
        if header["memory"] == "host":
            return [0] * header["streams"]
        streams = self._streams[0]
        if header["staged"]:
            streams = self._streams[1 + self._staged % SETS_OF_STREAMS]
            self._staged += 1
        while len(streams) < header["streams"]:
            streams.append(self._stream())
        return streams

    def _call(self, header: Header, payload: memoryview) -> tuple[Header, list[Any]]:
        streams = self._handles(header)
        memory = self._gpu.memory if self._gpu and header["memory"] == "device" else self._host
        addresses = memory.upload(header["images"], payload)
        pointers = [address + header["guard"] for address in addresses]
        if self._launchers:
            self._launchers.use(streams[0])
        if self._gpu:
            self._gpu.soil()
        self._runtime.settle()
        staged = [
            (pointers[array] if array < len(pointers) else array, *rest) for array, *rest in header["staged"]
        ]
        staging = Staging(self._runtime, staged, streams[: header["streams"]]) if staged else None
        if staging:
            staging.arrive(self._gpu.delay if self._gpu else lambda _stream: None)
        self._make(header["calls"], pointers, streams)
        # A caller with host pointers reads its arrays when the call returns, without waiting for the device.
        content = memory.content(self._channel.room) if header["memory"] == "host" else None
        if staging:
            staging.leave()
            if header["queued"]:
                for _ in range(QUEUED_CALLS):
                    self._make(header["queued"], pointers, streams)
                    staging.order()
        self._runtime.settle()
        if staging:
            staging.finish()
        return {"status": "returned"}, [memory.content(self._channel.room) if content is None else content]

    def _make(self, calls: Sequence[Header], pointers: list[int], streams: list[int]) -> None:
        """Call functions one after the other; what one returns may be an argument of a later one."""
        encoded = self._launchers.argument if self._launchers else argument
        handles: list[Any] = []
        for call in calls:
            function = self._functions[call["entry_point"]]
            for kind, value in call["arguments"] if not self._launchers else ():
                if kind == "handle" and not handles[value].value:
                    returning = calls[value]["entry_point"]
                    self.ask({"status": "null", "returned_by": returning, "passed_to": call["entry_point"]})
            if call["returns"] and not self._launchers:
                function.restype = ctypes.c_void_p
            returned = function(
                *(
                    handles[value] if kind == "handle" else encoded(kind, value, pointers, streams)
                    for kind, value in call["arguments"]
                )
            )
            handles.append(returned if self._launchers else ctypes.c_void_p(returned))

    def _time(self, header: Header, payload: memoryview) -> tuple[Header, list[Any]]:
        answer: tuple[Header, list[Any]] = self._timer.answer(
            header, payload, self._functions, self._channel.room, self._launchers
        )
        return answer

    def _run_model(self, header: Header, payload: memoryview) -> tuple[Header, list[Any]]:
        answer: tuple[Header, list[Any]] = self._model.answer(header, payload)
        return answer


def main() -> None:
    """Serve until the judge closes the channel."""
    channel = take_channel()
    drop_rights()
    number = os.environ.pop(witness.VARIABLE, "")
    _witness = witness.Witness(int(number)) if number else None  # must live as long as this loop
    Server(channel).serve()
