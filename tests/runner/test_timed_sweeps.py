"""Timed sweeps with both ends in one process: the judge's session asks, the runner's timer obeys.

CuPy is a fake on the host's memory, the libraries are real. A graph replays nothing there: what is looked at
is called anew by the other methods.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import math
import subprocess
import sys
import weakref
from contextlib import nullcontext
from random import SystemRandom
from typing import TYPE_CHECKING, Any

import fake_cupy
import numpy as np
import pytest

from grader.devices import calls
from grader.devices.device import ArrayArgument, Call, Memory, ScalarArgument, Status, StreamArgument
from grader.devices.runner import RunnerError
from grader.devices.timed import Content, Piece, Plan, Step, TimedSession
from grader.runner import library as runner_library
from grader.runner.library import CudaError, NoMemoryError, Runtime, UnsupportedError, load
from grader.runner.protocol import Frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

ROWS, COLUMNS, SLOTS = 5, 4, 3

SOURCE = """
#include <string.h>
struct Piece { unsigned long long to, from, bytes; };
extern "C" void launch_restore(const Piece* pieces, int count, long long, void*) {
  for (const Piece* p = pieces; p < pieces + count; ++p) {
    if (p->from) memcpy((void*)p->to, (void*)p->from, p->bytes); else memset((void*)p->to, 0xFF, p->bytes);
  }
}
extern "C" void launch_double(float* y, const float* x, int count, void* stream) {
  for (int i = 0; i < count; ++i) y[i] = (stream ? 2 : 3) * x[i];  // 3 on the default stream
}
extern "C" void baseline_half(float* y, const float* x, int count, void*) {
  for (int i = 0; i < count; ++i) y[i] = x[i] / 2;
}
extern "C" void launch_stream(const void*, long long, void*, long long, void*) {}
"""


@pytest.fixture
def timing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("cupy", "cupy.cuda"):
        monkeypatch.setitem(sys.modules, name, fake_cupy)
    for name in ("grader.runner.gpu", "grader.runner.timing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("grader.runner.timing")
    for name in ("grader.runner.gpu", "grader.runner.timing"):
        sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("timed")
    (folder / "code.cpp").write_text(SOURCE)
    command = ["g++", "-shared", "-fPIC", "-o", str(folder / "code.so"), str(folder / "code.cpp")]
    subprocess.run(command, check=True)
    return folder / "code.so"


class Quiet:
    """The calls of libcudart, none of which fails; notes what part of a graph is behind what other."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []

    def settle(self) -> None:
        pass

    def drive(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        pass

    def call(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        if name == "cudaGraphAddChildGraphNode":
            node, _, ahead, count, part = arguments
            node._obj.value = part.value
            self.parts.append((part.value, ahead._obj.value if count.value else 0))


class Pooled(Quiet):
    """The same where each captured call has nodes of these types."""

    def __init__(self, *types: int) -> None:
        super().__init__()
        self.types = types

    def call(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        if name == "cudaGraphGetNodes":
            _, nodes, count = arguments
            count._obj.value = len(self.types)
            if nodes is not None:
                nodes[:] = range(1, 1 + len(self.types))
        elif name == "cudaGraphNodeGetType":
            node, kind = arguments
            kind._obj.value = self.types[node.value - 1]
        else:
            super().call(name, *arguments)


class Direct:
    """A runner without a process: what the judge asks goes straight to the timer."""

    def __init__(self, timer: Any, functions: dict[str, Any], launchers: Any = None) -> None:  # noqa: ANN401
        self.timer, self.functions, self.launchers = timer, functions, launchers
        self.asked: list[str] = []

    def ask(
        self,
        request: dict[str, Any],
        payload: Sequence[Any],
        reply: int,
        _seconds: float,
        using: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> Frame:
        data = bytearray(b"".join(bytes(piece) for piece in payload))
        self.asked.append(request["step"])
        with using():
            header, pieces = self.timer.answer(
                request, memoryview(data), self.functions, self.room, self.launchers
            )
        answer = bytearray(b"".join(bytes(piece) for piece in pieces))
        assert len(answer) in (0, reply)
        return Frame({"message": "", "printed": "", **header}, answer)

    @staticmethod
    def room(size: int) -> memoryview:
        return memoryview(bytearray(size))

    def close(self) -> None:
        pass


def plan(library: Path, method: str, memory: Memory = Memory.DEVICE, dtype: str = "float32") -> Plan:
    """``dtype`` is that of the output, of as many bytes as a float."""
    shape, count = (ROWS, COLUMNS), ROWS * COLUMNS
    arguments = (
        ArrayArgument("y", dtype, shape, None),
        ArrayArgument("x", "float32", shape, np.zeros(shape, np.float32)),
        ScalarArgument("count", "int", count),
        StreamArgument("stream", 0),
    )
    half = [("array", 0), ("array", 1), ("int", count), ("stream", 0)]
    return Plan(
        call=Call("launch_double", arguments, 10.0, memory),
        written=frozenset({"y"}),
        method=method,
        slots=SLOTS,
        turns={"y": ROWS, "x": ROWS},
        libraries={library: ("baseline_half", "launch_restore", "launch_stream")},
        steps=(Step("baseline_half", tuple(half)),),
        scratch=(4 * count,),
        reads=64,
        writes=64,
    )


def bases(seed: int, count: int = 2) -> list[dict[str, Any]]:
    random = np.random.default_rng(seed)
    return [{"x": random.random((ROWS, COLUMNS), np.float32)} for _ in range(count)]


def opened(timing: Any, library: Path, method: str, runtime: Quiet | None = None) -> TimedSession:  # noqa: ANN401
    fake = timing.Timer(importlib.import_module("grader.runner.gpu").Gpu(runtime or Quiet()))
    session = TimedSession(Direct(fake, load(str(library), ["launch_double"])))  # type: ignore[arg-type]
    memory = Memory.HOST if method == "host" else Memory.DEVICE
    session.prepare(plan(library, method, memory), bases(1))
    return session


class InPython:
    """Functions in Python, which get an array as its address, type and shape."""

    def __init__(self, strangers: list[str]) -> None:
        self.met: list[Any] = []
        self.graphs: list[int] = []
        self._strangers = strangers

    def argument(self, kind: str, value: Any, pointers: list[int], _streams: list[int]) -> Any:  # noqa: ANN401
        return (pointers[value[0]], *value[1:]) if kind == "array" else value

    def use(self, stream: int) -> None:
        self.met.append(stream)

    def strangers(self, graphs: Iterator[int]) -> list[str]:
        self.graphs = list(graphs)
        return self._strangers

    def launch_double(self, y: Any, x: Any, count: int) -> None:  # noqa: ANN401
        assert (y[1:], x[1:], count) == (("float32", (ROWS, COLUMNS)),) * 2 + (ROWS * COLUMNS,)
        self.met.append(np.frombuffer((ctypes.c_float * count).from_address(x[0]), np.float32).copy())


def opened_in_python(timing: Any, library: Path, strangers: list[str]) -> InPython:  # noqa: ANN401
    timer = timing.Timer(importlib.import_module("grader.runner.gpu").Gpu(Quiet()))
    python = InPython(strangers)
    runner = Direct(timer, {"launch_double": python.launch_double}, python)
    TimedSession(runner, calls.of_python).prepare(plan(library, "graph"), bases(1))  # type: ignore[arg-type]
    return python


def test_a_function_in_python_is_called_once_on_zeros_before_it_is_captured(
    timing: Any,  # noqa: ANN401
    library: Path,
) -> None:
    python = opened_in_python(timing, library, [])
    stream, first, *captured = python.met
    assert stream
    np.testing.assert_array_equal(first, np.zeros(ROWS * COLUMNS))
    assert len(captured) == len(set(python.graphs)) == timing.INSTANCES * SLOTS
    assert all(np.array_equal(content, bases(1)[0]["x"].reshape(-1)) for content in captured)


def test_what_a_function_in_python_does_beside_its_kernels_is_not_trusted(
    timing: Any,  # noqa: ANN401
    library: Path,
) -> None:
    with pytest.raises(RunnerError, match=r"other than launch kernels.*the kernel of another") as raised:
        opened_in_python(timing, library, ["the kernel of another"])
    assert raised.value.status is Status.UNTRUSTED


def whole(session: TimedSession, slot: int) -> Any:  # noqa: ANN401
    session.keep([Piece(slot, "y", 0, ROWS * COLUMNS)])
    (kept,) = session.fetch()
    return kept["y"].reshape(ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("method", "arm", "factor"),
    [("events", "submission", 2), ("host", "submission", 3), ("host", "baseline", 0.5)],
)
def test_every_slot_computes_the_content_that_it_was_told(
    timing: Any,  # noqa: ANN401
    library: Path,
    method: str,
    arm: str,
    factor: float,
) -> None:
    session = opened(timing, library, method)
    held = bases(1)
    for added in ([], bases(2), bases(3)):
        if added:
            session.add(added)
        contents = [Content(0, 0), Content(1, 3), Content(2 if added else 0, 4)]
        assert session.sweep(arm, contents) > 0
        for slot, (base, turn) in enumerate(contents):
            wanted = np.float32(factor) * np.roll([*held, *added][base]["x"], turn, axis=0)
            np.testing.assert_array_equal(whole(session, slot), wanted)


@pytest.mark.parametrize("method", ["events", "host"])
def test_a_sweep_ends_after_as_many_calls_as_it_is_told(timing: Any, library: Path, method: str) -> None:  # noqa: ANN401
    session = opened(timing, library, method)
    session.sweep("submission", [Content(0, 0)] * SLOTS, 2)
    assert [np.isnan(whole(session, slot)).all() for slot in range(SLOTS)] == [False, False, True]


def test_a_graph_of_the_first_calls_has_the_parts_of_one_that_is_timed(timing: Any, library: Path) -> None:  # noqa: ANN401
    runtime = Quiet()
    session = opened(timing, library, "graph", runtime)
    timed = [runtime.parts[first : first + SLOTS] for first in range(0, len(runtime.parts), SLOTS)]
    runtime.parts.clear()
    session.sweep("submission", [Content(0, 0)] * SLOTS, 2)
    assert runtime.parts in [graph[:2] for graph in timed]
    for _ in range(20 * timing.INSTANCES):
        session.sweep("submission", [Content(0, 0)] * SLOTS, 2)
    assert len(runtime.parts) == 2 * timing.INSTANCES  # one of each graph, which is kept
    runtime.parts.clear()
    session.sweep("submission", [Content(0, 0)] * SLOTS)
    assert not runtime.parts


def test_calls_that_allocate_are_graphs_one_behind_the_other(
    timing: Any,  # noqa: ANN401
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = opened(timing, library, "graph", Pooled(10, 0, 11))
    launched: list[int] = []
    monkeypatch.setattr(fake_cupy.runtime, "graphLaunch", lambda graph, _: launched.append(graph))
    session.sweep("submission", [Content(0, 0)] * SLOTS)
    assert len(set(launched)) == SLOTS
    launched.clear()
    session.sweep("submission", [Content(0, 0)] * SLOTS, 2)
    assert len(set(launched)) == 2


def test_calls_that_free_less_than_they_allocate_cannot_be_replayed(timing: Any, library: Path) -> None:  # noqa: ANN401
    with pytest.raises(CudaError, match="does not free what it allocates"):
        opened(timing, library, "graph", Pooled(10, 10, 11))


@pytest.mark.parametrize("method", ["graph", "events", "host"])
def test_a_case_leaves_memory_before_the_next_one_comes(timing: Any, library: Path, method: str) -> None:  # noqa: ANN401
    gc.disable()
    try:
        session = opened(timing, library, method)
        gone = weakref.ref(session._runner.timer._case)  # type: ignore[attr-defined]
        memory = Memory.HOST if method == "host" else Memory.DEVICE
        session.prepare(plan(library, method, memory), bases(1))
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("method", ["events", "host"])
def test_outputs_are_poisoned_before_every_sweep(timing: Any, library: Path, method: str) -> None:  # noqa: ANN401
    session = opened(timing, library, method)
    session.sweep("submission", [Content(0, 0)] * SLOTS)
    session.sweep("nothing", [Content(0, 0)] * SLOTS)
    assert np.isnan(whole(session, 1)).all()


@pytest.mark.parametrize("method", ["events", "host"])
def test_outputs_of_integers_hold_what_the_judge_says(timing: Any, library: Path, method: str) -> None:  # noqa: ANN401
    fake = timing.Timer(importlib.import_module("grader.runner.gpu").Gpu(Quiet()))
    session = TimedSession(Direct(fake, load(str(library), ["launch_double"])))  # type: ignore[arg-type]
    memory = Memory.HOST if method == "host" else Memory.DEVICE
    held = [
        {**base, "y": np.arange(index, index + 20, dtype=np.int32)} for index, base in enumerate(bases(1))
    ]
    session.prepare(plan(library, method, memory, "int32"), held)
    session.sweep("nothing", [Content(1, 0), Content(1, 2), Content(0, 0)])
    for slot, base, turn in ((0, 1, 0), (1, 1, 2), (2, 0, 0)):
        wanted = np.roll(held[base]["y"].reshape(ROWS, COLUMNS), turn, axis=0)
        np.testing.assert_array_equal(whole(session, slot), wanted)
        assert whole(session, slot).dtype == np.int32


@pytest.mark.parametrize(("method", "crossed"), [("events", []), ("host", ["to host", "to device"] * SLOTS)])
def test_what_a_call_with_host_pointers_copies_crosses_the_bus_even_if_nothing_runs(
    timing: Any,  # noqa: ANN401
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    crossed: list[str],
) -> None:
    session = opened(timing, library, method)
    kinds = {timing.TO_DEVICE: "to device", timing.TO_HOST: "to host"}
    copied = []
    monkeypatch.setattr(
        fake_cupy.runtime, "memcpy", lambda *call: copied.append((call[2], kinds.get(call[3])))
    )
    session.sweep("nothing", [Content(0, 0)] * SLOTS)
    arrays = [kind for size, kind in copied if size == 4 * ROWS * COLUMNS]
    assert arrays == crossed


def test_new_bases_may_be_more_than_there_were(timing: Any, library: Path) -> None:  # noqa: ANN401
    session = opened(timing, library, "events")
    session.add(bases(2, SLOTS))
    session.sweep("submission", [Content(2 + slot, 0) for slot in range(SLOTS)])
    for slot in range(SLOTS):
        np.testing.assert_array_equal(whole(session, slot), 2 * bases(2, SLOTS)[slot]["x"])


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (MemoryError("all is taken"), NoMemoryError),
        (fake_cupy.CUDARuntimeError(2), NoMemoryError),
        (fake_cupy.CUDARuntimeError(700), CudaError),
    ],
)
def test_want_of_memory_is_told_from_other_errors(
    timing: Any,  # noqa: ANN401
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    told: type[Exception],
) -> None:
    def failing(_: int) -> None:
        raise error

    monkeypatch.setattr(fake_cupy.cuda, "alloc", failing)
    with pytest.raises(told):
        opened(timing, library, "graph")


def test_a_call_that_the_driver_does_not_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_library, "DRIVER", "libc.so.6")
    runtime = Runtime.__new__(Runtime)  # without a libcudart
    with pytest.raises(UnsupportedError, match="has no cuCtxRecordEvent"):
        runtime.drive("cuCtxRecordEvent")


@pytest.mark.parametrize("answer", [10**400, -1.0, 1e9, "1", None])
def test_what_is_no_time_is_no_number(answer: object) -> None:
    class Said:
        def ask(self, *_: object) -> Frame:
            return Frame({"status": "returned", "seconds": answer}, bytearray())

    assert math.isnan(TimedSession(Said()).sweep("submission", []))  # type: ignore[arg-type]


@pytest.mark.parametrize(("method", "factor"), [("events", 2), ("host", 3)])
def test_what_is_kept_stays_as_it_was_and_comes_back_in_order(
    timing: Any,  # noqa: ANN401
    library: Path,
    method: str,
    factor: float,
) -> None:
    session = opened(timing, library, method)
    for base in (1, 0):
        session.sweep("submission", [Content(base, 0)] * SLOTS)
        session.keep([Piece(2, "y", 17, 3), Piece(0, "y", 0, 2), Piece(0, "x", 5, 1)])
    for base, kept in zip((1, 0), session.fetch(), strict=True):
        x = bases(1)[base]["x"].reshape(-1)
        np.testing.assert_array_equal(kept["y"], np.float32(factor) * np.array([*x[17:], *x[:2]]))
        np.testing.assert_array_equal(kept["x"], x[5:6])
    assert session.fetch() == []


def test_what_is_to_be_kept_is_told_with_the_next_request_but_not_within_a_batch(
    timing: Any,  # noqa: ANN401
    library: Path,
) -> None:
    session = opened(timing, library, "events")
    contents = [Content(1, 0)] * SLOTS
    for ask in (session.sweep, lambda arm, contents: session.batch(arm, [contents])):
        session.sweep("submission", contents)
        session.keep([Piece(0, "y", 0, 2)])
        session.keep([Piece(0, "y", 2, 2)])
        ask("submission", contents)
    assert len(session.fetch()) == 4
    asked = session._runner.asked  # type: ignore[attr-defined]
    assert asked == ["prepare", "sweep", "sweep", "sweep", "keep", "batch", "fetch"]


def test_more_pieces_than_restoring_has_are_kept(timing: Any, library: Path) -> None:  # noqa: ANN401
    session = opened(timing, library, "events")
    session.sweep("submission", [Content(1, 0)] * SLOTS)
    session.keep([Piece(1, "y", place, 1) for place in range(ROWS * COLUMNS)])
    np.testing.assert_array_equal(session.fetch()[0]["y"], 2 * bases(1)[1]["x"].reshape(-1))


def test_batches_are_timed_by_the_judge_and_by_the_runner(timing: Any, library: Path) -> None:  # noqa: ANN401
    session = opened(timing, library, "events")
    random = SystemRandom()
    sweeps = [[Content(0, random.randrange(ROWS)) for _ in range(SLOTS)] for _ in range(4)]
    assert session.batch("nothing", sweeps).runner == 0
    by_judge, by_runner = session.batch("submission", sweeps, 2)
    assert by_judge > by_runner > 0
    assert [np.isnan(whole(session, slot)).all() for slot in range(SLOTS)] == [False, False, True]


@pytest.mark.parametrize("turn", range(6))
def test_rotation_moves_whole_rows(timing: Any, turn: int) -> None:  # noqa: ANN401
    sources, target = np.arange(24).reshape(2, 12), np.full(12, -1)
    arrays = [{"bytes": target.nbytes, "turns": 6}]
    slots = np.array([[target.ctypes.data]], np.uint64)
    bases = np.array([[source.ctypes.data] for source in sources], np.uint64)
    for to, start, size in timing.pieces(slots, bases, arrays, [[1, turn]]).tolist():
        ctypes.memmove(to, start, size)
    np.testing.assert_array_equal(target.reshape(6, 2), np.roll(sources[1].reshape(6, 2), turn, axis=0))


def test_arrays_that_do_not_turn_are_copied_whole_and_those_without_a_base_filled(timing: Any) -> None:  # noqa: ANN401
    arrays = [{"bytes": 100, "turns": 1}, {"bytes": 60, "turns": 6}]
    slots, bases = np.array([[1000, 2000], [3000, 4000]], np.uint64), np.array([[500, 0]], np.uint64)
    table = timing.pieces(slots, bases, arrays, [[0, 5], [0, 1]])
    assert table.tolist() == [[1000, 500, 100], [2000, 0, 60], [3000, 500, 100], [4000, 0, 60]]


def test_every_method_can_be_prepared(timing: Any, library: Path) -> None:  # noqa: ANN401
    for method in ("graph", "events", "host"):
        session = opened(timing, library, method)
        for arm in ("baseline", "submission", "stream", "nothing"):
            session.sweep(arm, [Content(0, 0)] * SLOTS)


def test_sweeps_of_an_arm_replay_several_graphs_alike_that_no_other_arm_has(
    timing: Any,  # noqa: ANN401
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = opened(timing, library, "graph")
    launched: list[int] = []
    monkeypatch.setattr(fake_cupy.runtime, "graphLaunch", lambda graph, _: launched.append(graph))
    seen = {}
    for arm in ("baseline", "submission"):
        launched.clear()
        for _ in range(200):
            session.sweep(arm, [Content(0, 0)] * SLOTS)
        seen[arm] = set(launched)
    assert [len(graphs) for graphs in seen.values()] == [timing.INSTANCES] * 2
    assert not seen["baseline"] & seen["submission"]


def test_each_call_of_a_graph_is_a_graph_behind_the_one_before(timing: Any, library: Path) -> None:  # noqa: ANN401
    runtime = Quiet()
    opened(timing, library, "graph", runtime)
    graphs = [runtime.parts[first : first + SLOTS] for first in range(0, len(runtime.parts), SLOTS)]
    assert len(graphs) == 1 + 2 * timing.INSTANCES
    for graph in graphs:
        parts = [part for part, _ in graph]
        assert [ahead for _, ahead in graph] == [0, *parts[:-1]]


@pytest.mark.parametrize("method", ["graph", "events"])
def test_all_streams_are_waited_for_before_and_after_the_clock_runs_and_between_calls_made_anew(
    timing: Any,  # noqa: ANN401
    library: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
) -> None:
    happened: list[str] = []
    runtime, event = Quiet(), fake_cupy.Event
    monkeypatch.setattr(runtime, "drive", lambda name, *_: happened.append(name))
    monkeypatch.setattr(event, "record", lambda *_: happened.append("event"))
    monkeypatch.setattr(fake_cupy.runtime, "graphLaunch", lambda *_: happened.append("calls"))
    monkeypatch.setitem(globals(), "load", lambda *_: {"launch_double": lambda *_: happened.append("call")})
    session = opened(timing, library, method, runtime)
    restoring = session._runner.timer._case._library  # type: ignore[attr-defined]
    monkeypatch.setitem(restoring, "launch_restore", lambda *_: happened.append("restored"))
    happened.clear()
    session.sweep("submission", [Content(0, 0)] * SLOTS)
    fence = ["cuCtxRecordEvent", "cuCtxWaitEvent"]
    calls = ["calls"] if method == "graph" else ["call", *fence] * SLOTS
    copied, restored = fence, fence
    assert happened == [*copied, "restored", *restored, "event", *calls, *fence, "event"]


def test_small_arrays_lie_in_one_chunk_and_large_ones_by_themselves(
    timing: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[int] = []
    alloc = fake_cupy.cuda.alloc
    monkeypatch.setattr(fake_cupy.cuda, "alloc", lambda size: taken.append(size) or alloc(size))
    monkeypatch.setattr(timing, "CHUNK_BYTES", 4096)
    arena = timing.Arena()
    arena._used = 4096
    first, second, _, third = (arena.take(size) for size in (100, 1024, 3000, 2048))
    assert taken == [4096, 3000]
    assert second.ptr - first.ptr == 512
    assert third.ptr - second.ptr == 1024
    arena.take(1024)
    assert taken == [4096, 3000, 4096]
