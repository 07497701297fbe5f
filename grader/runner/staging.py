"""Copies the inputs of a call in through its streams, and the outputs out through them.

Work on any other stream then finds poison instead of inputs, and its outputs are not copied out. So this
shows whether a launcher orders its work correctly on the streams that it is given.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.runner.library import Runtime

ON_DEVICE = 3  # cudaMemcpyKind
NO_TIMING = 2  # cudaEventDisableTiming
POISON = 0xFF


class Staging:
    """The arrays of one call, each ``(address, bytes, whether it is read)``, and the streams that copy."""

    def __init__(
        self, runtime: Runtime, arrays: Sequence[tuple[int, int, bool]], streams: Sequence[int]
    ) -> None:
        self._runtime = runtime
        self._arrays = [(ctypes.c_void_p(address), size, read) for address, size, read in arrays]
        self._first, *self._others = [ctypes.c_void_p(stream) for stream in streams]
        self._held = [self._allocated(size) for _, size, _ in self._arrays]

    def arrive(self, delay: Callable[[int], None]) -> None:
        """Poison the inputs, and enqueue copies that restore them behind a ``delay`` on the first stream."""
        for (array, size, read), held in zip(self._arrays, self._held, strict=True):
            if read:
                self._runtime.call("cudaMemcpy", held, array, ctypes.c_size_t(size), ON_DEVICE)
                self._runtime.call("cudaMemset", array, POISON, ctypes.c_size_t(size))
        self._runtime.settle()
        delay(self._first.value or 0)
        for (array, size, read), held in zip(self._arrays, self._held, strict=True):
            if read:
                self._copy(array, held, size)
        self._fork()

    def leave(self) -> None:
        """Enqueue the copies of all arrays behind the work of all streams and before any later work."""
        self._join()
        for (array, size, _), held in zip(self._arrays, self._held, strict=True):
            self._copy(held, array, size)
        self._fork()

    def order(self) -> None:
        """Put the later work of all streams behind all that has been enqueued, as between two calls."""
        self._join()
        self._fork()

    def finish(self) -> None:
        """Copy the results that came through the streams back to the arrays, after all work has ended."""
        for (array, size, _), held in zip(self._arrays, self._held, strict=True):
            self._runtime.call("cudaMemcpy", array, held, ctypes.c_size_t(size), ON_DEVICE)
            self._runtime.call("cudaFree", held)

    def _join(self) -> None:
        """Make the first stream wait for the others."""
        for other in self._others:
            self._runtime.call("cudaStreamWaitEvent", self._first, self._event(other), 0)

    def _fork(self) -> None:
        """Make the other streams wait for the first."""
        reached = self._event(self._first)
        for other in self._others:
            self._runtime.call("cudaStreamWaitEvent", other, reached, 0)

    def _copy(self, to: ctypes.c_void_p, source: ctypes.c_void_p, size: int) -> None:
        self._runtime.call("cudaMemcpyAsync", to, source, ctypes.c_size_t(size), ON_DEVICE, self._first)

    def _event(self, stream: ctypes.c_void_p) -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        self._runtime.call("cudaEventCreateWithFlags", ctypes.byref(event), NO_TIMING)
        self._runtime.call("cudaEventRecord", event, stream)
        return event

    def _allocated(self, size: int) -> ctypes.c_void_p:
        pointer = ctypes.c_void_p()
        self._runtime.call("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(size))
        return pointer
