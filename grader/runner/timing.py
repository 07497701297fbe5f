"""Timed sweeps on a GPU: runs one arm over rotating buffers, with contents that the judge has just chosen.

An *arm* is what runs: the unfused baseline, the submission, a streaming kernel, or nothing. A *slot* is one
set of arrays for a call. A *base* is a set of inputs that the judge sent, and a *content* is a base with its
rows rotated. A *sweep* restores every slot (copies inputs from a content, poisons outputs) and then runs the
arm once per slot, as one CUDA graph, of which there are several equal instances. All slots together are
larger than the L2, so every call finds a cold cache. The runner learns the arm and the contents of each sweep
only when the judge requests it.
"""

from __future__ import annotations

import ctypes
import time
from functools import partial
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from grader.runner.gpu import TO_DEVICE, TO_HOST, checked, to_device, to_host
from grader.runner.host import HostMemory
from grader.runner.library import argument, load
from grader.runner.ordered import Fence, Graph, Part, Row, in_order, joined
from grader.runner.round_trip import Operand, RoundTrip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import numpy.typing as npt

    from grader.runner.gpu import Gpu
    from grader.runner.protocol import Header
    from grader.runner.triton.launchers import Launchers

    Arm = Callable[[int], Callable[[], float]]
    """Takes a number of calls, and returns a function that makes them and returns the seconds they took."""

cuda: Any = cupy.cuda
PIECE_BYTES = 24  # size of Piece in restore.cu
CHUNK_BYTES = 32 << 20
ALIGNMENT = 512
INSTANCES = 8  # of each arm's graph, because its position in memory changes its time by up to 0.5 %
RANDOM = SystemRandom()


class Arena:
    """Memory of the device that is taken in large chunks, because taking each array takes 0.1 ms or more.

    A chunk is free again when nobody holds any piece of it.
    """

    def __init__(self) -> None:
        self._chunk: Any = None
        self._used = CHUNK_BYTES

    def take(self, size: int) -> Any:  # noqa: ANN401 - CuPy has no types
        """A piece of ``size`` bytes, which begins where CuPy's own pieces may begin."""
        if size > CHUNK_BYTES // 2:
            return cuda.alloc(size)
        if self._used + size > CHUNK_BYTES:
            self._chunk, self._used = cuda.alloc(CHUNK_BYTES), 0
        piece = self._chunk + self._used
        self._used += -(-size // ALIGNMENT) * ALIGNMENT
        return piece


class Slot:
    """The arrays of one call: addresses on the device and, for launchers with host pointers, on the host."""

    def __init__(self, sizes: list[int], arena: Arena, *, host: bool) -> None:
        self._blocks = [arena.take(size) for size in sizes]
        self.device: list[int] = [block.ptr for block in self._blocks]
        self._memory = HostMemory()
        self.host = self._memory.upload(sizes, memoryview(bytearray(sum(sizes)))) if host else []


class Timer:
    """Answers the judge's timing requests; see ``TimedCalls`` for their format."""

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._case: TimedCalls | None = None

    @checked
    def answer(
        self,
        header: Header,
        payload: memoryview,
        functions: dict[str, Any],
        room: Callable[[int], memoryview],
        launchers: Launchers | None = None,
    ) -> tuple[Header, list[Any]]:
        """One step: prepare a case, add bases, run a sweep or a batch, or fetch pieces of slots in ``room``.

        Before each of them but the first one, pieces are kept of what the last sweep left.
        """
        step = header["step"]
        returned: Header = {"status": "returned"}
        if step == "prepare":
            self._case = None  # free its memory before the next case or a launcher allocates
            cupy.get_default_memory_pool().free_all_blocks()
            self._gpu.runtime.call("cudaDeviceGraphMemTrim", 0)
            self._case = TimedCalls(self._gpu, header, payload, functions, launchers)
            return {**returned, "strangers": self._case.strangers}, []
        assert self._case is not None
        for pieces in header["keep"]:
            self._case.keep(pieces)
        if step == "add":
            self._case.add(header["bases"], payload)
        elif step == "batch":
            sweeps = (self._case.sweep(header["arm"], one, header["calls"]) for one in header["contents"])
            return {**returned, "seconds": sum(sweeps)}, []
        elif step == "sweep":
            seconds = self._case.sweep(header["arm"], header["contents"], header["calls"])
            return {**returned, "seconds": seconds}, []
        elif step == "fetch":
            return returned, [self._case.fetch(room)]
        return returned, []


class TimedCalls:
    """One prepared case: slots, bases and arms.

    The header of ``prepare`` has ``arrays`` (for each ``bytes``, ``read``, ``written`` and ``turns``: the
    number of rows that rotate, 1 if none do), the number of ``slots`` and of ``bases``, the ``method``
    (graph, events or host), the call (``entry_point``, ``arguments``, ``streams``), the baseline
    (``libraries``, ``steps`` of ``function`` and ``arguments``, and ``scratch``: bytes of each temporary,
    numbered behind the arrays), and ``reads`` and ``writes``: bytes per call of the streaming kernel, which
    is the baseline where there are no steps.

    A function in Python is called once before any content has come, for what it compiles and chooses then.

    Attributes:
        strangers: what a function in Python did in a call other than to launch its kernels, in words.
    """

    def __init__(
        self,
        gpu: Gpu,
        header: Header,
        payload: memoryview,
        functions: dict[str, Any],
        launchers: Launchers | None = None,
    ) -> None:
        self._gpu = gpu
        self._host = header["method"] == "host"
        self._arrays = header["arrays"]
        sizes = [array["bytes"] for array in self._arrays]
        arena, self._keeping = Arena(), Arena()
        self._slots = [Slot(sizes, arena, host=self._host) for _ in range(header["slots"])]
        self._scratch = [cuda.alloc(size) for size in header["scratch"]]
        self._temporaries = HostMemory()
        self._streams = [gpu.new_stream() for _ in range(max(1, header["streams"]))]
        self._fence = Fence(gpu.runtime)
        self._bases: list[list[Any]] = []
        self._usual = 0
        self._kept: list[tuple[Any, int]] = []
        self.strangers: list[str] = []
        self._library: dict[str, Any] = {}
        for path, names in header["libraries"]:
            self._library |= load(path, names)
        self._addresses = np.array(
            [slot.host if self._host else slot.device for slot in self._slots], np.uint64
        )
        self._table_bytes = 2 * PIECE_BYTES * len(self._slots) * len(sizes)
        self._table = cuda.alloc(self._table_bytes)
        encoded = launchers.argument if launchers else argument
        submission = self._submission(functions[header["entry_point"]], header["arguments"], encoded)
        if launchers:
            launchers.use(self._streams[0].ptr)
            self._try_out(submission[0])
        self.add(header["bases"], payload)
        self._usual = header["bases"]
        self._restore([[0, 0]] * len(self._slots))
        cuda.runtime.deviceSynchronize()
        streaming, steps = self._streaming(header["reads"], header["writes"]), header["steps"]
        self._arms: dict[str, Arm] = {
            "nothing": lambda _: lambda: 0.0,
            "stream": self._by_graphs([self._graph(streaming)]),
        }
        if self._host:
            self._arms["baseline"] = (
                self._by_host_clock(self._round_trips(steps, header["scratch"]))
                if steps
                else self._arms["stream"]
            )
            self._arms["submission"] = self._by_host_clock(submission)
        else:
            replayed = {
                "baseline": [self._baseline(slot, steps) for slot in self._slots] if steps else streaming
            }
            if header["method"] == "graph":
                replayed["submission"] = submission
            else:
                self._arms["submission"] = self._by_events(submission)
            graphs = [  # in random order, so that neither arm's graphs always come first in memory
                {arm: self._graph(replayed[arm]) for arm in RANDOM.sample(list(replayed), len(replayed))}
                for _ in range(INSTANCES)
            ]
            for arm in replayed:
                self._arms[arm] = self._by_graphs([instance[arm] for instance in graphs])
            if launchers:
                captured = [part.graph for instance in graphs for part in instance["submission"].parts]
                self.strangers = launchers.strangers(captured)

    def add(self, bases: int, payload: memoryview) -> None:
        """Put bases behind those that the case was prepared with, in place of others that were put there.

        ``payload`` has the bytes of every array that is read, base after base.
        """
        offset = 0
        added: list[list[Any]] = [[] for _ in range(bases)]
        arena = Arena()
        self._bases = [*self._bases[: self._usual], *added]
        for base in added:
            for array in self._arrays:
                if not array["read"]:
                    base.append(None)
                    continue
                data = payload[offset : offset + array["bytes"]]
                offset += array["bytes"]
                if self._host:
                    base.append(ctypes.create_string_buffer(bytes(data), len(data)))
                else:
                    base.append(arena.take(len(data)))
                    to_device(base[-1].ptr, data)
        self._sources = np.array([[address(source) for source in base] for base in self._bases], np.uint64)

    def sweep(self, arm: str, contents: list[list[int]], calls: int | None = None) -> float:
        """Seconds of one sweep of ``arm``, without restoring; slot i gets ``contents[i]``: base, turn.

        The sweep covers all slots, or only the first ``calls`` of them.
        """
        timed = self._arms[arm](len(contents) if calls is None else calls)
        self._gpu.cold_cache_policy()
        if self._host:
            self._cross_bus()
        self._restore(contents)
        seconds = timed()
        self._gpu.runtime.settle()
        return seconds

    def keep(self, pieces: list[list[int]]) -> None:
        """Copy ``pieces``, one after the other, to where ``fetch`` finds them.

        Each is slot, array number, offset and size. On a device they stay there, which takes much less time.
        """
        size = sum(count for *_, count in pieces)
        held = ctypes.create_string_buffer(max(1, size)) if self._host else self._keeping.take(size)
        table, target = [], address(held)
        for slot, array, offset, count in pieces:
            table.append((target, int(self._addresses[slot][array]) + offset, count))
            target += count
        self._copy(np.array(table, np.uint64).reshape(-1, 3))
        self._kept.append((held, size))

    def fetch(self, room: Callable[[int], memoryview]) -> memoryview:
        """The bytes of all that was kept and not yet fetched, in ``room`` for as many."""
        pending, self._kept = self._kept, []
        content, offset = room(sum(size for _, size in pending)), 0
        for held, size in pending:
            piece = content[offset : offset + size]
            if self._host:
                piece[:] = memoryview(held).cast("B")[:size]
            else:
                to_host(held.ptr, piece)
            offset += size
        return content

    def _cross_bus(self) -> None:
        """Copy the arrays to the device and back, as a call with host pointers must.

        Restoring memory that has just crossed the bus takes up to 1.5 times as long. Without these copies,
        only sweeps behind a call would be slower to restore, and the judge's clock would charge the call.
        """
        for slot in self._slots:
            for array, device, host in zip(self._arrays, slot.device, slot.host, strict=True):
                if array["read"]:
                    cuda.runtime.memcpy(device, host, array["bytes"], TO_DEVICE)
                if array["written"]:
                    cuda.runtime.memcpy(host, device, array["bytes"], TO_HOST)

    def _restore(self, contents: list[list[int]]) -> None:
        self._copy(pieces(self._addresses, self._sources, self._arrays, contents))

    def _copy(self, table: npt.NDArray[np.uint64]) -> None:
        """Make the copies and fills of ``table``, see ``pieces``, before any later work."""
        if self._host:
            for to, source, size in table.tolist():
                if source:
                    ctypes.memmove(to, source, size)
                else:
                    ctypes.memset(to, 0xFF, size)
        elif len(table):
            if table.nbytes > self._table_bytes:
                self._table, self._table_bytes = cuda.alloc(table.nbytes), table.nbytes
            to_device(self._table.ptr, table.data.cast("B"))
            self._fence.put()  # the table and the bases may still be in transfer
            self._library["launch_restore"](
                ctypes.c_void_p(self._table.ptr),
                ctypes.c_int(len(table)),
                ctypes.c_longlong(int(table[:, 2].max())),
                ctypes.c_void_p(self._streams[0].ptr),
            )
            self._fence.put()

    def _try_out(self, call: Callable[[], None]) -> None:
        """Make a call in the first slot, on zeros."""
        for array, address in zip(self._arrays, self._slots[0].device, strict=True):
            cuda.runtime.memset(address, 0, array["bytes"])
        cuda.runtime.deviceSynchronize()
        call()
        self._gpu.runtime.settle()

    def _submission(
        self,
        function: Any,  # noqa: ANN401
        arguments: list[Any],
        encoded: Callable[[str, Any, list[int], list[int]], Any],
    ) -> list[Callable[[], None]]:
        handles = [0 if self._host else stream.ptr for stream in self._streams]  # see ``Server._handles``
        return [
            partial(
                function,
                *(
                    encoded(kind, value, slot.host if self._host else slot.device, handles)
                    for kind, value in arguments
                ),
            )
            for slot in self._slots
        ]

    def _baseline(self, slot: Slot, steps: list[Header]) -> Callable[[], None]:
        pointers = [*slot.device, *(block.ptr for block in self._scratch)]
        handles = [self._streams[0].ptr]
        return _in_turn(
            partial(
                self._library[step["function"]],
                *(argument(kind, value, pointers, handles) for kind, value in step["arguments"]),
            )
            for step in steps
        )

    def _round_trips(self, steps: list[Header], scratch: list[int]) -> list[Callable[[], None]]:
        """The baseline on host memory, where its temporaries are too; every operation copies its operands."""
        temporaries = self._temporaries.upload(scratch, memoryview(bytearray(sum(scratch))))
        sizes = [*(array["bytes"] for array in self._arrays), *scratch]
        handles = [self._streams[0].ptr]
        calls = []
        for slot in self._slots:
            host = [*slot.host, *temporaries]
            trips = []
            for step in steps:
                arguments = [argument(kind, value, host, handles) for kind, value in step["arguments"]]
                result, *operands = (
                    Operand(passed, host[value], sizes[value])
                    for passed, (kind, value) in zip(arguments, step["arguments"], strict=True)
                    if kind in {"array", "changed"}
                )
                is_partial = any(kind == "changed" for kind, _ in step["arguments"])
                trip = RoundTrip(self._library[step["function"]], arguments, result, operands, is_partial)
                trips.append(partial(trip.run, cuda.runtime, self._streams[0].synchronize))
            calls.append(_in_turn(trips))
        return calls

    def _streaming(self, reads: int, writes: int) -> list[Callable[[], None]]:
        """The streaming kernel over as many buffers as there are slots."""
        arena = Arena()
        buffers = [(arena.take(reads), arena.take(writes)) for _ in self._slots]
        self._streamed = buffers  # they must live as long as the graph that writes to them
        for source, _ in buffers:
            cuda.runtime.memset(source.ptr, 0, reads)
        stream = ctypes.c_void_p(self._streams[0].ptr)
        return [
            partial(
                self._library["launch_stream"],
                ctypes.c_void_p(source.ptr),
                ctypes.c_longlong(reads),
                ctypes.c_void_p(target.ptr),
                ctypes.c_longlong(writes),
                stream,
            )
            for source, target in buffers
        ]

    def _graph(self, calls: list[Callable[[], None]]) -> Graph | Row:
        parts = [Part(self._gpu.runtime, self._streams, call) for call in calls]
        return in_order(self._gpu.runtime, self._streams[0], parts)

    # The functions that these return must not refer to the case: it would stay in memory beside the next one.

    def _by_graphs(self, graphs: Sequence[Graph | Row]) -> Arm:
        """Time a replay of one of the graphs, chosen at random."""
        between = self._between_events()
        return lambda count: partial(between, RANDOM.choice(graphs).first(count).launch)

    def _by_events(self, calls: list[Callable[[], None]]) -> Arm:
        """Time new calls of the launcher; its work on the host counts as far as the device waits for it."""
        prepared = [_in_turn([joined(self._streams, call), self._fence.put]) for call in calls]
        between = self._between_events()
        return lambda count: partial(between, _in_turn(prepared[:count]))

    def _between_events(self) -> Callable[[Callable[[], None]], float]:
        start, end = cuda.Event(), cuda.Event()
        stream, fence = self._streams[0], self._fence

        def timed(launch: Callable[[], None]) -> float:
            start.record(stream)
            launch()
            fence.put()  # streams that the launcher created may still be busy
            end.record(stream)
            end.synchronize()
            return float(cuda.get_elapsed_time(start, end)) / 1000

        return timed

    @staticmethod
    def _by_host_clock(calls: list[Callable[[], None]]) -> Arm:
        def timed(count: int) -> float:
            start = time.perf_counter()
            for call in calls[:count]:
                call()
                cuda.runtime.deviceSynchronize()
            return time.perf_counter() - start

        return lambda count: partial(timed, count)


def address(source: Any) -> int:  # noqa: ANN401 - memory of the device, of the host, or none
    """The address of memory; 0 for none, as of a base's array that is only written."""
    if source is None:
        return 0
    return int(source.ptr) if hasattr(source, "ptr") else ctypes.addressof(source)


def pieces(
    slots: npt.NDArray[np.uint64],
    bases: npt.NDArray[np.uint64],
    arrays: list[Header],
    contents: list[list[int]],
) -> npt.NDArray[np.uint64]:
    """The copies that put ``contents[i]`` into slot i: [n, 3] target address, source address and bytes.

    ``slots`` and ``bases`` are the addresses of their arrays, with one row for each slot or base. In a slot,
    an array begins ``turn`` rows later than in its base. An array whose source is 0 is filled with poison.
    """
    chosen, turn = np.array(contents, np.uint64).T
    sizes = np.array([array["bytes"] for array in arrays], np.uint64)
    rows = np.array([array["turns"] for array in arrays], np.uint64)
    source = bases[chosen]
    ahead = np.where(source == 0, np.uint64(0), sizes // rows * (turn[:, None] % rows))
    first = np.stack([slots + ahead, source, sizes - ahead], -1)
    second = np.stack([slots, source + sizes - ahead, ahead], -1)
    table = np.concatenate([first.reshape(-1, 3), second.reshape(-1, 3)])
    return np.ascontiguousarray(table[table[:, 2] > 0])


def _in_turn(calls: Iterable[Callable[[], None]]) -> Callable[[], None]:
    prepared = list(calls)

    def run() -> None:
        for call in prepared:
            call()

    return run
