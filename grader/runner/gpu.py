"""Memory and streams on a GPU, through CuPy. This module is imported only where there is a GPU."""

from __future__ import annotations

import ctypes
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import cupy

from grader.runner.host import host_address
from grader.runner.library import CudaError, NoMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.runner.library import Runtime

GARBAGE_BYTES = 256 << 20
DELAYS, COOLINGS = 200, 4  # times 0.1 ms on a large GPU
TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind
PERSISTING_L2 = 6  # cudaLimitPersistingL2CacheSize
RELEASE_THRESHOLD = 4  # cudaMemPoolAttrReleaseThreshold
OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def checked(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """``function``, with CuPy's errors raised as CudaError or NoMemoryError."""

    @wraps(function)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> Returned:
        try:
            return function(*args, **kwargs)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise NoMemoryError(str(error)) from error
        except (cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError) as error:
            if error.status == OUT_OF_MEMORY:
                raise NoMemoryError(str(error)) from error
            raise CudaError(f"{error} (in the grader's own call)") from error

    return wrapped


class DeviceMemory:
    """Images (guard zone, data, guard zone) on the device, at the same addresses while sizes are equal."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._blocks: list[Any] = []

    @checked
    def upload(self, sizes: Sequence[int], payload: memoryview) -> list[int]:
        """Copy the images, which follow each other in ``payload``, to the device; return their addresses."""
        if list(sizes) != self._sizes:
            self._blocks = []  # free these first, because old and new ones together may not fit
            self._blocks = [cupy.cuda.alloc(size) for size in sizes]
            self._sizes = list(sizes)
        offset = 0
        for block, size in zip(self._blocks, sizes, strict=True):
            to_device(block.ptr, payload[offset : offset + size])
            offset += size
        return [block.ptr for block in self._blocks]

    @checked
    def content(self, room: Callable[[int], memoryview]) -> memoryview:
        """The images as they are now, one behind the other, in ``room`` for so many bytes."""
        content, offset = room(sum(self._sizes)), 0
        for block, size in zip(self._blocks, self._sizes, strict=True):
            to_host(block.ptr, content[offset : offset + size])
            offset += size
        return content


def to_device(address: int, data: memoryview) -> None:
    """Copy bytes to the device and wait."""
    if len(data):
        cupy.cuda.runtime.memcpy(address, host_address(data), len(data), TO_DEVICE)


def to_host(address: int, data: memoryview) -> None:
    """Copy bytes from the device to ``data`` and wait."""
    if len(data):
        cupy.cuda.runtime.memcpy(host_address(data), address, len(data), TO_HOST)


class Gpu:
    """The GPU as the runner uses it."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.memory = DeviceMemory()
        self._streams: list[Any] = []
        self._ballast: Any = None
        self._start()

    @checked
    def _start(self) -> None:
        cupy.cuda.Device(0).use()
        cupy.cuda.runtime.deviceSynchronize()
        self.keep_pool()
        self.soil()

    def keep_pool(self) -> None:
        """Let the pool of ``cudaMallocAsync`` keep its memory, as PyTorch does.

        It would go back to the driver whenever the device is idle, so that the first call after that took
        several times as long as the next ones.
        """
        pool, most = ctypes.c_void_p(), ctypes.c_uint64(2**64 - 1)
        self.runtime.call("cudaDeviceGetDefaultMemPool", ctypes.byref(pool), 0)
        self.runtime.call("cudaMemPoolSetAttribute", pool, RELEASE_THRESHOLD, ctypes.byref(most))

    @checked
    def soil(self) -> None:
        """Leave garbage in memory that the next allocation may get, as earlier programs would."""
        free, _ = cupy.cuda.runtime.memGetInfo()
        size = min(GARBAGE_BYTES, free // 2)
        address = cupy.cuda.runtime.malloc(size)
        cupy.cuda.runtime.memset(address, 0xFF, size)
        cupy.cuda.runtime.free(address)

    @checked
    def delay(self, stream: int) -> None:
        """Keep ``stream`` busy for several milliseconds, longer than loading and starting a kernel takes."""
        self._fill(stream, DELAYS)

    @checked
    def cool(self, stream: int) -> None:
        """Replace what the caches hold by work on ``stream``, during which the host can enqueue a call."""
        self._fill(stream, COOLINGS)

    def _fill(self, stream: int, times: int) -> None:
        self._ballast = self._ballast or cupy.cuda.alloc(GARBAGE_BYTES)
        for _ in range(times):
            cupy.cuda.runtime.memsetAsync(self._ballast.ptr, 0xFF, GARBAGE_BYTES, stream)

    @checked
    def new_stream(self) -> Any:  # noqa: ANN401 - CuPy has no types
        """A stream that does not wait for the default stream."""
        self._streams.append(cupy.cuda.Stream(non_blocking=True))
        return self._streams[-1]

    def stream(self) -> int:
        """The handle of a new stream."""
        handle: int = self.new_stream().ptr
        return handle

    @checked
    def cold_cache_policy(self) -> None:
        """Forbid persisting L2 accesses, which would keep data in the cache from call to call."""
        if cupy.cuda.Device(0).attributes.get("MaxPersistingL2CacheSize", 0):
            cupy.cuda.runtime.deviceSetLimit(PERSISTING_L2, 0)
            self.runtime.call("cudaCtxResetPersistingL2Cache")
