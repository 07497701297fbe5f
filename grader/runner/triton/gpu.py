"""Loads and launches kernels in Triton on a GPU, in the CUDA context of this process."""

from __future__ import annotations

import ctypes
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from grader.runner.ordered import ALLOCATE, RELEASE, nodes
from grader.runner.triton.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from grader.runner.gpu import Gpu

cuda: Any = cupy.cuda
MOST_SHARED, PREFER_SHARED = 8, 1  # of CUfunction_attribute, and of CUfunc_cache
USUAL_SHARED = 48 << 10  # bytes that a kernel gets without asking
KERNEL = 0  # of cudaGraphNodeType
HARMLESS = {1, 2, 5}  # copies, fills and empty nodes: none of them computes
NODES = {3: "a function of the host", ALLOCATE: "an allocation", RELEASE: "a release of memory"}
REPEATS = 25  # runs by which one configuration is told from another
BYTES = 256  # that sizes of memory are rounded up to


class _KernelNode(ctypes.Structure):
    """``CUDA_KERNEL_NODE_PARAMS_v2``."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        ("sizes", ctypes.c_uint * 7),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class GpuRuntime(Runtime):
    """The calls on a GPU.

    Memory that a launcher gives back is kept for its next call, as PyTorch would keep it: a launcher that is
    captured may not allocate, and its graph uses that memory whenever it is replayed. Calls on a stream run
    one after the other, so they can share it.
    """

    def __init__(self, gpu: Gpu) -> None:
        super().__init__()
        self._gpu = gpu
        self.capability = int(cuda.Device(0).compute_capability)
        self._loaded: set[int] = set()
        self._free: dict[int, list[int]] = defaultdict(list)
        self._sizes: dict[int, int] = {}

    def load(self, code: bytes, kernel: str, shared: int) -> int:
        """The handle of a kernel in machine code for this GPU."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self._drive("cuModuleLoadData", ctypes.byref(module), code)
        self._drive("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        if shared > USUAL_SHARED:  # as in Triton: less shared memory leaves more of it to the L1 cache
            self._drive("cuFuncSetCacheConfig", function, PREFER_SHARED)
            self._drive("cuFuncSetAttribute", function, MOST_SHARED, shared)
        handle = function.value or 0
        self._loaded.add(handle)
        return handle

    def allocate_on(self, stream: int, nbytes: int) -> int:  # noqa: ARG002
        """Address of memory that was given back, or of new one."""
        size = -(-max(1, nbytes) // BYTES) * BYTES
        address = self._free[size].pop() if self._free[size] else self.allocate(size)
        self._sizes[address] = size
        return address

    def release_on(self, stream: int, address: int) -> None:  # noqa: ARG002
        """Keep such memory for whoever asks for as much."""
        self._free[self._sizes.pop(address)].append(address)

    def forget(self) -> None:
        """Give the memory back that is kept."""
        for addresses in self._free.values():
            for address in addresses:
                self.release(address)
        self._free.clear()

    def milliseconds(
        self, call: Callable[[], object], *, quantiles: Sequence[float], **_: object
    ) -> list[float]:
        """Quantiles of the times of a call, which finds the caches cold."""
        call()  # its first launch loads the kernel
        times = [self._milliseconds(call) for _ in range(REPEATS)]
        return [float(time) for time in np.quantile(times, quantiles)]

    def _milliseconds(self, call: Callable[[], object]) -> float:
        stream = cuda.ExternalStream(self.stream)
        start, end = cuda.Event(), cuda.Event()
        self._gpu.cool(self.stream)  # the host enqueues the call meanwhile
        start.record(stream)
        call()
        end.record(stream)
        end.synchronize()
        return float(cuda.get_elapsed_time(start, end))

    def strangers(self, graph: int) -> list[str]:
        """Texts about all that a captured call does but launching kernels that were loaded here."""
        handles = nodes(self._gpu.runtime, graph)
        return [words for node, kind in handles if (words := self._strange(node, kind))]

    def _strange(self, node: int, kind: int) -> str:
        if kind in HARMLESS:
            return ""
        if kind != KERNEL:
            return NODES.get(kind, f"a node of type {kind}")
        launched = _KernelNode()
        self._drive("cuGraphKernelNodeGetParams_v2", ctypes.c_void_p(node), ctypes.byref(launched))
        if launched.function in self._loaded:
            return ""
        name = ctypes.c_char_p()
        if launched.function:
            self._drive("cuFuncGetName", ctypes.byref(name), ctypes.c_void_p(launched.function))
        else:
            self._drive("cuKernelGetName", ctypes.byref(name), ctypes.c_void_p(launched.kernel))
        called = (name.value or b"").decode(errors="replace")
        return "" if called in self.built else f"the kernel {called}"

    def _start(
        self,
        function: int,
        grid: tuple[int, int, int],
        threads: int,
        shared: int,
        arguments: ctypes.Array[ctypes.c_void_p],
        stream: int,
    ) -> None:
        block = (threads, 1, 1)
        self._drive(
            "cuLaunchKernel",
            *(ctypes.c_void_p(function), *grid, *block, shared, ctypes.c_void_p(stream), arguments, None),
        )

    def _drive(self, name: str, *arguments: Any) -> None:  # noqa: ANN401
        self._gpu.runtime.drive(name, *arguments)
