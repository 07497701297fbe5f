"""The few calls of the CUDA runtime that launches of Triton need, on the library of this process.

As they stand they are for the sim, whose library is ours and whose device takes PTX as it is.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import struct
import weakref
from typing import TYPE_CHECKING

from grader.runner.triton.ptx import CAPABILITY

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

ALL_CONFIGS = "GRADER_ALL_CONFIGS"  # of the environment: every configuration of autotuning is to run
_FATBIN_MAGIC, _WRAPPER_MAGIC = 0xBA55ED50, 0x466243B1
_CONTAINER = struct.Struct("<IHHQ")
_IMAGE = struct.Struct("<HHIQIIIIQQQQ")  # kind, version, header, size, ..., target, ..., flags, ..., inflated
_PTX = 1
_ON_DEVICE, _BY_ADDRESS = 3, 4  # of cudaMemcpy; in the second, the direction follows from the addresses
_MOST_SHARED = 8  # of cudaFuncAttribute: dynamic shared memory, 48 KiB unless one asks for more
_NON_BLOCKING = 1  # of cudaStreamCreateWithFlags
_STAGE = 4 << 20  # bytes
_PROPERTIES_BYTES = 4096  # more than cudaDeviceProp has in any version


class DeviceCallError(RuntimeError):
    """A call of the runtime failed; the text says which and why."""


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint))


class _Wrapper(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint),
        ("version", ctypes.c_uint),
        ("data", ctypes.c_void_p),
        ("unused", ctypes.c_void_p),
    )


class Runtime:
    """The library's calls, with errors as :class:`DeviceCallError`.

    Attributes:
        capability: of the device, such as 80; kernels are compiled for it.
        stream: that a launcher works on.
        built: the linker's names of the kernels that the judge has built with the file.
    """

    capability = CAPABILITY
    stream = 0
    built: Collection[str] = ()

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcudart.so.13")
        for function in ("cudaGetErrorString", "__cudaRegisterFatBinary"):
            getattr(self._library, function).restype = ctypes.c_void_p
        self._functions = itertools.count(1)
        self._launched = True  # since autotuning last asked for a time
        self._stage = 0  # memory that this process and the device share; there is none before the first copy

    def load(self, code: bytes, kernel: str, shared: int) -> int:
        """The handle of a kernel, which takes so many bytes of dynamic shared memory."""
        text = code + bytes(8 - len(code) % 8)
        image = _IMAGE.pack(_PTX, 0x101, _IMAGE.size, len(text), 0, 0, 0, self.capability, 0, 0, 0, 0) + text
        container = _CONTAINER.pack(_FATBIN_MAGIC, 1, _CONTAINER.size, len(image)) + image
        wrapper = _Wrapper(_WRAPPER_MAGIC, 1, ctypes.cast(ctypes.c_char_p(container), ctypes.c_void_p), None)
        fatbin = ctypes.c_void_p(getattr(self._library, "__cudaRegisterFatBinary")(ctypes.byref(wrapper)))
        function, name = next(self._functions), kernel.encode()
        register = getattr(self._library, "__cudaRegisterFunction")
        register(fatbin, ctypes.c_void_p(function), name, name, -1, *(None,) * 5)
        self._call("cudaFuncSetAttribute", ctypes.c_void_p(function), _MOST_SHARED, shared)
        return function

    def launch(
        self,
        function: int,
        grid: tuple[int, int, int],
        threads: int,
        shared: int,
        values: list[int],
        stream: int,
    ) -> None:
        """Enqueue a kernel; ``values`` are addresses in this process of the parameters' bytes."""
        self._launched = True
        if 0 not in grid:
            self._start(function, grid, threads, shared, (ctypes.c_void_p * len(values))(*values), stream)

    def _start(
        self,
        function: int,
        grid: tuple[int, int, int],
        threads: int,
        shared: int,
        arguments: ctypes.Array[ctypes.c_void_p],
        stream: int,
    ) -> None:
        self._call(
            "cudaLaunchKernel",
            ctypes.c_void_p(function),
            _Dim3(*grid),
            _Dim3(threads, 1, 1),
            arguments,
            ctypes.c_size_t(shared),
            ctypes.c_void_p(stream),
        )

    def synchronize(self) -> None:
        """Wait for all work."""
        self._call("cudaDeviceSynchronize")

    def fill(self, address: int, nbytes: int, stream: int) -> None:
        """Enqueue writing zeros."""
        value = ctypes.c_int(0)
        self._call(
            "cudaMemsetAsync",
            ctypes.c_void_p(address),
            value,
            ctypes.c_size_t(nbytes),
            ctypes.c_void_p(stream),
        )

    def allocate(self, nbytes: int) -> int:
        """Address of new device memory."""
        address = ctypes.c_void_p()
        self._call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(nbytes))
        return address.value or 0

    def _staged(self) -> int:
        """Address of ``_STAGE`` bytes through which copies go: a socket would cost three times as much."""
        if not self._stage:
            address = ctypes.c_void_p()
            self._call("cudaMallocManaged", ctypes.byref(address), ctypes.c_size_t(_STAGE), 1)
            weakref.finalize(self, self._library.cudaFree, address)
            self._stage = address.value or 0
        return self._stage

    def release(self, address: int) -> None:
        """Free device memory."""
        self._library.cudaFree(
            ctypes.c_void_p(address)
        )  # an earlier error of the device comes back here, too

    def allocate_on(self, stream: int, nbytes: int) -> int:
        """Address of new device memory for work that is enqueued on ``stream`` from now on."""
        address = ctypes.c_void_p()
        self._call("cudaMallocAsync", ctypes.byref(address), ctypes.c_size_t(nbytes), ctypes.c_void_p(stream))
        return address.value or 0

    def release_on(self, stream: int, address: int) -> None:
        """Free such memory behind the work on ``stream``."""
        self._library.cudaFreeAsync(ctypes.c_void_p(address), ctypes.c_void_p(stream))  # see ``release``

    def copy_in(self, to: int, source: int, nbytes: int) -> None:
        """Copy from this process."""
        for at, size in _parts(nbytes):
            ctypes.memmove(self._staged(), source + at, size)
            self._copy(to + at, self._staged(), size)

    def copy_out(self, to: int, source: int, nbytes: int) -> None:
        """Copy to this process."""
        for at, size in _parts(nbytes):
            self._copy(self._staged(), source + at, size)
            ctypes.memmove(to + at, self._staged(), size)

    def forget(self) -> None:
        """Give freed memory back that is kept for later: none here."""

    def copy_on(self, stream: int, to: int, source: int, nbytes: int) -> None:
        """Enqueue a copy within the device."""
        self._call(
            "cudaMemcpyAsync",
            ctypes.c_void_p(to),
            ctypes.c_void_p(source),
            ctypes.c_size_t(nbytes),
            _ON_DEVICE,
            ctypes.c_void_p(stream),
        )

    def milliseconds(
        self, call: Callable[[], object], *, quantiles: Sequence[float], **_: object
    ) -> list[float]:
        """Autotuning's clock, which the sim has not: all are alike, and the first that runs is taken.

        It runs before its own call, as on a GPU: a kernel in place that autotuning does not restore gives
        wrong results. The runs are odd in number, so this holds of a kernel that undoes itself, too.
        """
        if self._launched:  # so this is another tuning
            call()
        elif ALL_CONFIGS in os.environ:
            call()
            call()
        self._launched = False
        return [0.0] * len(quantiles)

    def memory(self) -> tuple[int, int]:
        """Bytes of the device that are free, and all."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def create_stream(self) -> int:
        """The handle of a new stream that does not wait for the default one, as PyTorch's."""
        stream = ctypes.c_void_p()
        self._call("cudaStreamCreateWithFlags", ctypes.byref(stream), _NON_BLOCKING)
        return stream.value or 0

    def synchronize_stream(self, stream: int) -> None:
        """Wait for the work on a stream."""
        self._call("cudaStreamSynchronize", ctypes.c_void_p(stream))

    def create_event(self) -> int:
        """The handle of a new event."""
        event = ctypes.c_void_p()
        self._call("cudaEventCreate", ctypes.byref(event))
        return event.value or 0

    def record_event(self, event: int, stream: int) -> None:
        """Put an event behind the work on a stream."""
        self._call("cudaEventRecord", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def wait_event(self, stream: int, event: int) -> None:
        """Let the later work on a stream wait for an event."""
        self._call("cudaStreamWaitEvent", ctypes.c_void_p(stream), ctypes.c_void_p(event), 0)

    def synchronize_event(self, event: int) -> None:
        """Wait for an event."""
        self._call("cudaEventSynchronize", ctypes.c_void_p(event))

    def elapsed(self, start: int, end: int) -> float:
        """Milliseconds from one event to another."""
        milliseconds = ctypes.c_float()
        self._call(
            "cudaEventElapsedTime",
            ctypes.byref(milliseconds),
            ctypes.c_void_p(start),
            ctypes.c_void_p(end),
        )
        return milliseconds.value

    def strangers(self, _graph: int) -> list[str]:
        """What a captured call does other than to launch kernels that were loaded here: nothing can."""
        return []

    def name(self) -> str:
        """The device's name."""
        properties = ctypes.create_string_buffer(_PROPERTIES_BYTES)  # the name comes first
        self._call("cudaGetDeviceProperties", properties, 0)
        return properties.value.decode()

    def attribute(self, number: int) -> int:
        """A device's attribute by its number in ``cudaDeviceAttr``."""
        value = ctypes.c_int()
        self._call("cudaDeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value

    def _copy(self, to: int, source: int, nbytes: int) -> None:
        self._call(
            "cudaMemcpy", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(nbytes), _BY_ADDRESS
        )

    def _call(self, name: str, *arguments: object) -> None:
        if error := getattr(self._library, name)(*arguments):
            words = ctypes.cast(self._library.cudaGetErrorString(error), ctypes.c_char_p).value or b""
            raise DeviceCallError(f"{name}: {words.decode()}")


def _parts(nbytes: int) -> Iterator[tuple[int, int]]:
    """Where each part begins that fits the stage, and its bytes."""
    for at in range(0, nbytes, _STAGE):
        yield at, min(_STAGE, nbytes - at)
