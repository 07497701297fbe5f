"""Memory and captured calls of kernels in Triton on a GPU, whose libraries are fakes."""

from __future__ import annotations

import importlib
import itertools
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import fake_cupy
import pytest

from grader.runner.triton import runtime as calls

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNEL, COPY, FILL, HOST = range(4)
OURS, FOREIGN = 4096, 8192


class Libraries:
    """The runtime's and the driver's calls: what is allocated, and a graph of nodes of these types."""

    def __init__(self) -> None:
        self.freed: list[int] = []
        self.nodes: dict[int, tuple[int, int]] = {}  # type and function by node
        places = itertools.count(1 << 20, 1 << 20)

        def malloc(pointer: Any, _size: object) -> int:  # noqa: ANN401
            pointer._obj.value = next(places)
            return 0

        def nodes(_graph: object, found: Any, count: Any) -> int:  # noqa: ANN401
            if found is not None and not count._obj.value:
                return 1  # there is no place for nodes
            for place, node in enumerate(self.nodes if found else ()):
                found[place] = node
            count._obj.value = len(self.nodes)
            return 0

        def kind(node: Any, said: Any) -> int:  # noqa: ANN401
            said._obj.value = self.nodes[node.value][0]
            return 0

        self.runtime = SimpleNamespace(
            cudaGetErrorString=SimpleNamespace(),
            __cudaRegisterFatBinary=SimpleNamespace(),
            cudaMalloc=malloc,
            cudaFree=lambda pointer: self.freed.append(pointer.value),
            cudaGraphGetNodes=nodes,
            cudaGraphNodeGetType=kind,
        )

    def call(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        assert not getattr(self.runtime, name)(*arguments)

    def drive(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        match name, arguments:
            case "cuModuleGetFunction", (function, *_):
                function._obj.value = OURS
            case "cuGraphKernelNodeGetParams_v2", (node, said):
                said._obj.function = self.nodes[node.value][1]
            case "cuFuncGetName", (said, _function):
                said._obj.value = b"another"


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Libraries:
    made = Libraries()
    monkeypatch.setattr(calls.ctypes, "CDLL", lambda _name: made.runtime)
    return made


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch, libraries: Libraries) -> Iterator[Any]:
    name = "grader.runner.triton.gpu"
    for one in ("cupy", "cupy.cuda"):
        monkeypatch.setitem(sys.modules, one, fake_cupy)
    monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module(name)
    yield module.GpuRuntime(SimpleNamespace(runtime=libraries))
    sys.modules.pop(name, None)


def test_memory_is_kept_for_the_next_call_until_it_is_forgotten(runtime: Any, libraries: Libraries) -> None:  # noqa: ANN401
    first, other = runtime.allocate_on(0, 1000), runtime.allocate_on(0, 5000)
    runtime.release_on(0, first)
    assert runtime.allocate_on(0, 5000) not in (first, other)
    assert runtime.allocate_on(0, 1001) == first
    runtime.release_on(0, first)
    assert libraries.freed == []
    runtime.forget()
    assert libraries.freed == [first]
    assert runtime.allocate_on(0, 1000) != first


def test_kernels_of_others_and_calls_of_the_host_are_strangers(runtime: Any, libraries: Libraries) -> None:  # noqa: ANN401
    assert runtime.strangers(7) == []
    runtime.load(b"machine code", "own", 0)
    libraries.nodes = {1: (KERNEL, OURS), 2: (COPY, 0), 3: (FILL, 0)}
    assert runtime.strangers(7) == []
    libraries.nodes |= {4: (KERNEL, FOREIGN), 5: (HOST, 0)}
    assert runtime.strangers(7) == ["the kernel another", "a function of the host"]


def test_kernels_are_compiled_for_the_gpu(runtime: Any) -> None:  # noqa: ANN401
    assert runtime.capability == int(fake_cupy.Device().compute_capability)
