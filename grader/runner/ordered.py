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


class Graph:
    """A graph in which each call is a graph of its own behind the one before: no edge crosses calls."""

    def __init__(self, runtime: Runtime, streams: Sequence[Any], calls: Sequence[Callable[[], None]]) -> None:
        whole, last = ctypes.c_void_p(), ctypes.c_void_p()
        runtime.call("cudaGraphCreate", ctypes.byref(whole), 0)
        for number, call in enumerate(calls):
            cuda.runtime.streamBeginCapture(streams[0].ptr, cuda.runtime.streamCaptureModeThreadLocal)
            joined(streams, call)()
            part = cuda.runtime.streamEndCapture(streams[0].ptr)
            ahead = ctypes.byref(ctypes.c_void_p(last.value)), ctypes.c_size_t(number > 0)
            runtime.call(
                "cudaGraphAddChildGraphNode", ctypes.byref(last), whole, *ahead, ctypes.c_void_p(part)
            )
            cuda.runtime.graphDestroy(part)  # the node has a copy
        self._instance = cuda.runtime.graphInstantiate(whole.value)
        destroyed = weakref.finalize(self, cuda.runtime.graphExecDestroy, self._instance)
        destroyed.atexit = False  # type: ignore[misc]  # a property; CUDA may be gone by then
        cuda.runtime.graphDestroy(whole.value)
        cuda.runtime.graphUpload(self._instance, streams[0].ptr)

    def launch(self, stream: Any) -> None:  # noqa: ANN401 - CuPy has no types
        """Replay it on ``stream``."""
        cuda.runtime.graphLaunch(self._instance, stream.ptr)


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
