"""Calls that are made one after the other, whatever streams and launch attributes they use.

Within a call a launcher may order its work as it likes. Where it may not is across calls: one that takes the
streams in turn, or lets its launches begin before the launch ahead has ended, would have several at work at
once, and the time of all, shared out, is no call's time.
"""

from __future__ import annotations

import ctypes
import weakref
from typing import TYPE_CHECKING, Any

import cupy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.runner.library import Runtime

cuda: Any = cupy.cuda


class Part:
    """One call, recorded as a graph of its own."""

    def __init__(self, streams: Sequence[Any], call: Callable[[], None]) -> None:
        cuda.runtime.streamBeginCapture(streams[0].ptr, cuda.runtime.streamCaptureModeThreadLocal)
        joined(streams, call)()
        self.graph = cuda.runtime.streamEndCapture(streams[0].ptr)
        _finally(self, cuda.runtime.graphDestroy, self.graph)


class Graph:
    """A graph in which each call is a graph of its own behind the one before: no edge crosses calls."""

    def __init__(self, runtime: Runtime, stream: Any, parts: Sequence[Part]) -> None:  # noqa: ANN401
        self._runtime, self._stream, self._parts = runtime, stream, parts
        whole, last = ctypes.c_void_p(), ctypes.c_void_p()
        runtime.call("cudaGraphCreate", ctypes.byref(whole), 0)
        for number, part in enumerate(parts):  # the node has a copy of it
            ahead = ctypes.byref(ctypes.c_void_p(last.value)), ctypes.c_size_t(number > 0)
            runtime.call(
                "cudaGraphAddChildGraphNode", ctypes.byref(last), whole, *ahead, ctypes.c_void_p(part.graph)
            )
        self._instance = cuda.runtime.graphInstantiate(whole.value)
        _finally(self, cuda.runtime.graphExecDestroy, self._instance)
        cuda.runtime.graphDestroy(whole.value)
        cuda.runtime.graphUpload(self._instance, stream.ptr)

    def first(self, calls: int) -> Graph:
        """The same calls, but no more than the first ones."""
        return self if calls >= len(self._parts) else Graph(self._runtime, self._stream, self._parts[:calls])

    def launch(self) -> None:
        """Replay it."""
        cuda.runtime.graphLaunch(self._instance, self._stream.ptr)


class Fence:
    """Nothing that is asked for behind it begins before all that was asked for ahead of it has ended.

    That holds for all streams of the context, those that a launcher keeps to itself, too. It takes the GPU
    about 1 us.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._event = cuda.Event(disable_timing=True)
        self._operands = ctypes.c_void_p(cuda.driver.ctxGetCurrent()), ctypes.c_void_p(self._event.ptr)

    def put(self) -> None:
        """Put it behind what has been asked for until now."""
        self._runtime.drive("cuCtxRecordEvent", *self._operands)
        self._runtime.drive("cuCtxWaitEvent", *self._operands)


def _finally(owner: object, destroy: Callable[[int], None], handle: int) -> None:
    """Destroy what ``owner`` holds when it goes, but not as the process ends: CUDA may be gone by then."""
    weakref.finalize(owner, destroy, handle).atexit = False  # type: ignore[misc]  # a property


def joined(streams: Sequence[Any], call: Callable[[], None]) -> Callable[[], None]:
    """The call, with its other streams forked from the first and joined to it."""
    first, *others = streams
    if not others:
        return call
    fork = cuda.Event(disable_timing=True)
    joins = [cuda.Event(disable_timing=True) for _ in others]

    def run() -> None:
        fork.record(first)
        for other in others:
            other.wait_event(fork)
        call()
        for other, join in zip(others, joins, strict=True):
            join.record(other)
            first.wait_event(join)

    return run
