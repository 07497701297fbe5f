"""As much of CuPy as timed sweeps touch, on the host's memory: streams do at once what they are asked."""

from __future__ import annotations

import ctypes
import itertools
import time
from types import SimpleNamespace
from typing import Self


class CUDARuntimeError(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(f"cudaError {status}")
        self.status = status


class Memory:
    def __init__(self, size: int) -> None:
        self._bytes = ctypes.create_string_buffer(max(1, size))
        self.ptr = ctypes.addressof(self._bytes)

    def __add__(self, offset: int) -> SimpleNamespace:
        return SimpleNamespace(ptr=self.ptr + offset, held=self)


class Stream:
    def __init__(self, *, non_blocking: bool = False) -> None:
        self.ptr = id(self) if non_blocking else 0

    def wait_event(self, _event: Event) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Event:
    def __init__(self, *, disable_timing: bool = False) -> None:
        self.timed = not disable_timing
        self.at = 0.0
        self.ptr = id(self)

    def record(self, _stream: Stream) -> None:
        self.at = time.perf_counter()

    def synchronize(self) -> None:
        pass


class Device:
    def __init__(self, _number: int = 0) -> None:
        self.attributes = {"L2CacheSize": 1 << 20}
        self.compute_capability = "90"

    def use(self) -> Self:
        return self


def memcpy(target: int, source: int, size: int, *_: object) -> None:
    ctypes.memmove(target, source, size)


def memset(target: int, value: int, size: int, *_: object) -> None:
    ctypes.memset(target, value, size)


def nothing(*_: object) -> None:
    pass


def get_default_memory_pool() -> SimpleNamespace:
    return SimpleNamespace(free_all_blocks=nothing)


# What ran while it was recorded is not run again by a graph: its outputs are in the slots already.
handles = itertools.count(1)
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
libc.free.argtypes = (ctypes.c_void_p,)

runtime = SimpleNamespace(
    CUDARuntimeError=CUDARuntimeError,
    deviceSynchronize=nothing,
    free=libc.free,
    graphDestroy=nothing,
    graphExecDestroy=nothing,
    graphInstantiate=lambda _graph: next(handles),
    graphLaunch=nothing,
    graphUpload=nothing,
    malloc=libc.malloc,
    memGetInfo=lambda: (0, 0),
    memcpy=memcpy,
    memset=memset,
    memsetAsync=memset,
    streamBeginCapture=nothing,
    streamEndCapture=lambda _stream: next(handles),
    streamCaptureModeThreadLocal=1,
)
cuda = SimpleNamespace(
    alloc=Memory,
    Device=Device,
    Event=Event,
    Stream=Stream,
    driver=SimpleNamespace(CUDADriverError=CUDARuntimeError, ctxGetCurrent=lambda: 1),
    get_elapsed_time=lambda start, end: 1000 * (end.at - start.at) + 1e-3,
    memory=SimpleNamespace(OutOfMemoryError=MemoryError),
    runtime=runtime,
)
