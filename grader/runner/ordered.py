"""Keeps calls from overlapping on the GPU, whatever streams and launch attributes they use.

Within a call, a launcher may order its work freely. But calls must not overlap: a launcher that uses the
streams in turn, or programmatic dependent launches, could run several calls at once, and their total time
divided by their number would not be the time of a call.
"""

from __future__ import annotations

import ctypes
import weakref
from functools import cached_property
from typing import TYPE_CHECKING, Any

import cupy

from grader.runner.library import CudaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.runner.library import Runtime

cuda: Any = cupy.cuda
ALLOCATE, RELEASE = 10, 11  # cudaGraphNodeType


class Part:
    """One call, captured as a separate graph.

    Raises:
        CudaError: it cannot be replayed.
    """

    def __init__(self, runtime: Runtime, streams: Sequence[Any], call: Callable[[], None]) -> None:
        cuda.runtime.streamBeginCapture(streams[0].ptr, cuda.runtime.streamCaptureModeThreadLocal)
        joined(streams, call)()
        self.graph = cuda.runtime.streamEndCapture(streams[0].ptr)
        _finally(self, cuda.runtime.graphDestroy, self.graph)
        kinds = [kind for _, kind in nodes(runtime, self.graph)]
        self.allocates = ALLOCATE in kinds
        if kinds.count(ALLOCATE) != kinds.count(RELEASE):
            raise CudaError("a call does not free what it allocates, so that it cannot be replayed")

    @cached_property
    def instance(self) -> int:
        """The graph, ready to be launched. Of one that allocates memory there can be no second."""
        instance: int = cuda.runtime.graphInstantiate(self.graph)
        _finally(self, cuda.runtime.graphExecDestroy, instance)
        return instance


class Graph:
    """A graph whose nodes are the graphs of the calls, one behind the other, so that calls cannot overlap.

    Attributes:
        parts: the graphs of the calls.
    """

    def __init__(self, runtime: Runtime, stream: Any, parts: Sequence[Part]) -> None:  # noqa: ANN401
        self._runtime, self._stream, self.parts = runtime, stream, parts
        self._shorter: Graph | None = None
        graph, last = ctypes.c_void_p(), ctypes.c_void_p()
        runtime.call("cudaGraphCreate", ctypes.byref(graph), 0)
        for number, part in enumerate(parts):  # the node copies the graph of the part
            ahead = ctypes.byref(ctypes.c_void_p(last.value)), ctypes.c_size_t(number > 0)
            runtime.call(
                "cudaGraphAddChildGraphNode", ctypes.byref(last), graph, *ahead, ctypes.c_void_p(part.graph)
            )
        self._instance = cuda.runtime.graphInstantiate(graph.value)
        _finally(self, cuda.runtime.graphExecDestroy, self._instance)
        cuda.runtime.graphDestroy(graph.value)
        cuda.runtime.graphUpload(self._instance, stream.ptr)

    def first(self, calls: int) -> Graph:
        """A graph of only the first ``calls`` calls; the last one that was made is kept."""
        if calls >= len(self.parts):
            return self
        if self._shorter is None or len(self._shorter.parts) != calls:
            self._shorter = None  # its memory may be where the next one will be
            self._shorter = Graph(self._runtime, self._stream, self.parts[:calls])
        return self._shorter

    def launch(self) -> None:
        """Replay the graph."""
        cuda.runtime.graphLaunch(self._instance, self._stream.ptr)


class Row:
    """The graphs of calls, launched one behind the other: none that allocates memory is part of another.

    Attributes:
        parts: the graphs of the calls.
    """

    def __init__(self, stream: Any, parts: Sequence[Part]) -> None:  # noqa: ANN401
        self._stream, self.parts = stream, parts

    def first(self, calls: int) -> Row:
        """Only the first ``calls`` calls."""
        return self if calls >= len(self.parts) else Row(self._stream, self.parts[:calls])

    def launch(self) -> None:
        """Replay the graphs."""
        for part in self.parts:
            cuda.runtime.graphLaunch(part.instance, self._stream.ptr)


def in_order(runtime: Runtime, stream: Any, parts: Sequence[Part]) -> Graph | Row:  # noqa: ANN401
    """Graphs that replay ``parts`` on ``stream``; no part begins before the one ahead has ended."""
    if any(part.allocates for part in parts):
        for part in parts:
            cuda.runtime.graphUpload(part.instance, stream.ptr)
        return Row(stream, parts)
    return Graph(runtime, stream, parts)


class Fence:
    """A barrier across all streams of the context: later work begins only when all earlier work has ended.

    It also covers streams that a launcher creates itself. It takes the GPU about 1 us.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._event = cuda.Event(disable_timing=True)
        self._operands = ctypes.c_void_p(cuda.driver.ctxGetCurrent()), ctypes.c_void_p(self._event.ptr)

    def put(self) -> None:
        """Put the barrier behind all work that was enqueued until now."""
        self._runtime.drive("cuCtxRecordEvent", *self._operands)
        self._runtime.drive("cuCtxWaitEvent", *self._operands)


def nodes(runtime: Runtime, graph: int) -> list[tuple[int, int]]:
    """The handle and the type, a ``cudaGraphNodeType``, of each node of a graph."""
    count, kind = ctypes.c_size_t(), ctypes.c_int()
    runtime.call("cudaGraphGetNodes", ctypes.c_void_p(graph), None, ctypes.byref(count))
    handles = (ctypes.c_void_p * count.value)()
    if count.value:
        runtime.call("cudaGraphGetNodes", ctypes.c_void_p(graph), handles, ctypes.byref(count))
    pairs = []
    for handle in handles:
        runtime.call("cudaGraphNodeGetType", ctypes.c_void_p(handle), ctypes.byref(kind))
        pairs.append((handle or 0, kind.value))
    return pairs


def _finally(owner: object, destroy: Callable[[int], None], handle: int) -> None:
    """Destroy ``handle`` together with ``owner``, but not when the process ends: CUDA may be unloaded."""
    weakref.finalize(owner, destroy, handle).atexit = False  # type: ignore[misc]  # a property


def joined(streams: Sequence[Any], call: Callable[[], None]) -> Callable[[], None]:
    """The call, with the other streams forked from the first one and joined to it."""
    first, *further = streams
    if not further:
        return call
    fork = cuda.Event(disable_timing=True)
    joins = [cuda.Event(disable_timing=True) for _ in further]

    def run() -> None:
        fork.record(first)
        for other in further:
            other.wait_event(fork)
        call()
        for other, join in zip(further, joins, strict=True):
            join.record(other)
            first.wait_event(join)

    return run
