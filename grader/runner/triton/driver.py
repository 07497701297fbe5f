"""A driver for Triton that loads and launches kernels through the runtime of this process."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, Protocol

import torch
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from grader.runner.triton.ptx import WARP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grader.runner.triton.runtime import Runtime

_PROPERTIES = {"warpSize": 10, "max_num_regs": 12, "multiprocessor_count": 16, "max_shared_mem": 97}
"""What kernels are tuned by, and the attribute of ``cudaDeviceAttr`` that says it."""

_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64}
_TYPES |= {"i1": torch.bool, "i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64}
_TYPES |= {"u1": torch.bool, "u8": torch.uint8, "u16": torch.uint16, "u32": torch.uint32, "u64": torch.uint64}
"""Of scalars, by Triton's names."""


class Memory(Protocol):
    """Where the tensors that kernels get lie on the device."""

    def enter(self, tensor: torch.Tensor) -> int:
        """Address on the device of a tensor's first element, before a launch."""


class Driver(DriverBase):  # type: ignore[misc, unused-ignore] # Triton may be missing
    """A driver of Triton's for one device."""

    def __init__(self, runtime: Runtime, memory: Memory) -> None:
        super().__init__()
        self.utils = _Loader(runtime)
        self._runtime = runtime
        self._memory = memory

    @classmethod
    def is_active(cls) -> bool:
        """Whether Triton should choose this driver by itself: never, it is set."""
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Refuse: nothing here is compiled for the host."""
        raise NotImplementedError(ty)

    def get_current_target(self) -> GPUTarget:
        """The target that kernels are compiled for."""
        return GPUTarget("cuda", self._runtime.capability, WARP)

    def get_active_torch_device(self) -> torch.device:
        """Where PyTorch keeps the tensors that kernels take."""
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def get_current_stream(self, _device: int) -> int:
        """The stream to launch on."""
        return self._runtime.stream

    def get_device_interface(self) -> Any:  # noqa: ANN401 (Triton's)
        """What programs that measure time ask for streams and events."""
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., list[float]]:
        """Autotuning's clock."""
        return self._runtime.milliseconds

    def launcher_cls(self, source: Any, metadata: Any) -> Launcher:  # noqa: ANN401 (Triton's)
        """The class whose objects launch a compiled kernel."""
        return Launcher(self._runtime, self._memory, tuple(source.signature.values()), metadata)


class _Loader:
    """The part of a driver that Triton calls ``utils``."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def load_binary(
        self, name: str, code: bytes, shared: int, _device: int
    ) -> tuple[int, int, int, int, int]:
        """Module, function, registers, spills and the most threads of a block."""
        function = self._runtime.load(code, name, shared)
        return function, function, 0, 0, 1024

    def unload_module(self, _module: int) -> None:
        """Nothing: the device forgets it with the process."""

    def get_device_properties(self, _device: int) -> dict[str, int]:
        """The properties of the device that kernels are tuned by."""
        return {name: self._runtime.attribute(number) for name, number in _PROPERTIES.items()}


class Launcher:
    """Launches one compiled kernel.

    Args:
        runtime: of the device.
        memory: where tensors lie there.
        signature: Triton's type of each argument in Python, ``constexpr`` where the code holds it.
        metadata: of the compiled kernel.
    """

    def __init__(self, runtime: Runtime, memory: Memory, signature: Sequence[Any], metadata: Any) -> None:  # noqa: ANN401
        self._runtime = runtime
        self._memory = memory
        self._signature = signature
        self._threads = WARP * metadata.num_warps
        self._shared = metadata.shared
        self._scratch = (metadata.global_scratch_size, metadata.profile_scratch_size)

    def __call__(self, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> None:  # noqa: ANN401
        """Launch a grid of programs; ``rest``: four of Triton's own, then the arguments."""
        sizes = [x * y * z * nbytes for nbytes in self._scratch]
        scratch = [torch.zeros(size, dtype=torch.int8, device="cuda") if size else 0 for size in sizes]
        with torch._C.DisableTorchFunction():  # noqa: SLF001 (no mode need see each of our calls)
            self._launch((x, y, z), stream, function, rest[4:], scratch)

    def _launch(
        self,
        grid: tuple[int, int, int],
        stream: int,
        function: int,
        arguments: Sequence[Any],
        scratch: Sequence[Any],
    ) -> None:
        values = [self._value(kind, argument) for kind, argument in _flat(self._signature, arguments)]
        values += [self._value("*i8", buffer) for buffer in scratch]
        addresses = [value.data_ptr() for value in values]
        self._runtime.launch(function, grid, self._threads, self._shared, addresses, stream)

    def _value(self, kind: str, argument: Any) -> torch.Tensor:  # noqa: ANN401
        """A parameter's bytes."""
        if not kind.startswith("*"):
            return torch.tensor(argument, dtype=_TYPES[kind])
        tensor = getattr(argument, "base", argument)  # of triton.reinterpret
        if not isinstance(tensor, torch.Tensor):
            return torch.tensor(argument or 0, dtype=torch.int64)
        return torch.tensor(self._memory.enter(tensor), dtype=torch.int64)


def _flat(signature: Sequence[Any], arguments: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """Type and value of each parameter: no constants, tuples and descriptors by their parts."""
    for kind, argument in zip(signature, arguments, strict=True):
        if isinstance(kind, tuple):
            yield from _flat(kind, argument)
        elif kind.startswith("tensordesc"):
            yield from _parts(argument)
        elif kind != "constexpr":
            yield kind, argument


def _parts(descriptor: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """What a kernel for a device without descriptors gets: shape and strides twice, of two widths."""
    yield "*i8", descriptor.base
    yield from zip(repeat("i64"), (*descriptor.shape, *descriptor.strides))
    yield "i1", descriptor.padding == "nan"
    if hasattr(descriptor, "round_f32_to_tf32"):  # not in older versions of Triton
        yield "i1", descriptor.round_f32_to_tf32
    yield from zip(repeat("i32"), descriptor.shape)
    yield from zip(repeat("i64"), descriptor.strides)
