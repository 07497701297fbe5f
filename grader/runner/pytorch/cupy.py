"""As much of CuPy as a file needs that launches kernels on PyTorch's tensors.

The judge has built the kernels. Arrays are PyTorch's tensors under another name: nothing here computes.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from grader.runner.inlined import texts
from grader.runner.pytorch.raw import Libraries, Value, number
from grader.runner.raised import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from grader.runner.pytorch.raw import Kernel

_TYPES = {
    np.dtype(name): getattr(torch, name)
    for name in (
        *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}
_OF_TENSORS = {dtype: name for name, dtype in _TYPES.items()}
_COMPUTE = "launch a kernel for that, or use a tensor of PyTorch"


class Array:
    """An array of CuPy's, which is a tensor of PyTorch's; ``tensor`` is that."""

    def __init__(self, tensor: torch.Tensor) -> None:
        if tensor.dtype not in _OF_TENSORS:
            raise TypeError(f"CuPy has no arrays of {tensor.dtype}")
        self.tensor = tensor
        self.dtype = _OF_TENSORS[tensor.dtype]
        with torch._C.DisableTorchFunction():  # noqa: SLF001 (to look at a tensor is no operator)
            self.shape = tuple(tensor.shape)
            self.strides = tuple(step * tensor.element_size() for step in tensor.stride())
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self.itemsize = self.dtype.itemsize
        self.nbytes = self.size * self.itemsize

    @property
    def data(self) -> Memory:
        """Where it lies."""
        return Memory(self.tensor.data_ptr())

    def reshape(self, *shape: Any) -> Array:  # noqa: ANN401 - one by one or a tuple
        """A view of another shape."""
        return Array(self.tensor.reshape(*shape))

    def ravel(self) -> Array:
        """A view with one axis."""
        return Array(self.tensor.reshape(-1))


class Memory:
    """Memory of the device; ``ptr`` is its address."""

    def __init__(self, address: int) -> None:
        self.ptr = address


class Stream:
    """A stream of the device; ``ptr`` is its handle, 0 for the stream of the call."""

    def __init__(
        self,
        launches: _Launches,
        null: bool = False,
        non_blocking: bool = False,  # noqa: ARG002 - none waits for the default stream
        ptr: int | None = None,
    ) -> None:
        self._launches = launches
        self.ptr = (0 if null else launches.runtime.create_stream()) if ptr is None else ptr
        self._before: list[Stream] = []

    def __enter__(self) -> Self:
        """Let launches work on it, until it is left."""
        self._before.append(self._launches.stream)
        return self.use()

    def __exit__(self, *_: object) -> None:
        self._launches.stream = self._before.pop()

    def use(self) -> Self:
        """Let launches work on it."""
        self._launches.stream = self
        return self

    def synchronize(self) -> None:
        """Wait for its work."""
        self._launches.runtime.synchronize_stream(self.ptr or self._launches.runtime.stream)


def modules(libraries: Libraries) -> Mapping[str, ModuleType]:
    """CuPy and its part ``cuda`` by their names.

    Args:
        libraries: what the judge has built of the file.
    """
    launches = _Launches(libraries)
    whole, part = ModuleType("cupy"), ModuleType("cupy.cuda")
    vars(part).update(launches.streams(), Device=_device(libraries))
    vars(whole).update(
        {str(name): name.type for name in _TYPES},
        bool_=np.bool_,
        dtype=np.dtype,
        ndarray=Array,
        cuda=part,
        RawKernel=launches.raw_kernel,
        RawModule=launches.raw_module,
        asarray=_array,
        ascontiguousarray=_contiguous,
        from_dlpack=_array,
        empty=lambda shape, dtype=float: _new(torch.empty, shape, dtype),
        zeros=lambda shape, dtype=float: _new(torch.zeros, shape, dtype),
        empty_like=lambda array, dtype=None: _like(torch.empty, array, dtype),
        zeros_like=lambda array, dtype=None: _like(torch.zeros, array, dtype),
    )
    for name in ("from_dlpack", "as_tensor"):
        setattr(torch, name, _of_array(getattr(torch, name)))
    return {"cupy": whole, "cupy.cuda": part}


def _of_array(function: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """``function``, which gives the tensor that an array is."""

    def tensor_of(data: Any, *rest: Any, **named: Any) -> torch.Tensor:  # noqa: ANN401 - PyTorch's
        return data.tensor if isinstance(data, Array) else function(data, *rest, **named)

    return tensor_of


class _Launches:
    """CuPy's kernels and the stream that they are launched on."""

    def __init__(self, libraries: Libraries) -> None:
        self._libraries = libraries
        self.runtime = libraries.runtime
        self.stream = Stream(self, null=True)

    def streams(self) -> Mapping[str, object]:
        """What ``cupy.cuda`` has of streams."""
        make = partial(Stream, self)
        vars(make)["null"] = self.stream
        return {
            "Stream": make,
            "ExternalStream": lambda ptr, device_id=-1: Stream(self, ptr=ptr),  # noqa: ARG005 - CuPy's
            "get_current_stream": lambda device_id=-1: self.stream,  # noqa: ARG005 - CuPy's
        }

    def raw_kernel(
        self,
        code: str,
        name: str,
        options: Sequence[str] = (),
        backend: str = "nvrtc",  # noqa: ARG002 - the judge has built it
        translate_cucomplex: bool = False,  # noqa: ARG002
        enable_cooperative_groups: bool = False,
        **_: object,
    ) -> RawKernel:
        """CuPy's ``RawKernel``."""
        return RawKernel(self, code, name, options, enable_cooperative_groups)

    def raw_module(
        self,
        code: str,
        path: None = None,  # noqa: ARG002 - the judge asks for a text
        options: Sequence[str] = (),
        backend: str = "nvrtc",  # noqa: ARG002 - the judge has built it
        translate_cucomplex: bool = False,  # noqa: ARG002
        enable_cooperative_groups: bool = False,
        **_: object,
    ) -> RawModule:
        """CuPy's ``RawModule``."""
        return RawModule(self, code, options, enable_cooperative_groups)

    def kernel(self, code: str, options: Sequence[str], name: str) -> Kernel:
        """A kernel of a text."""
        return self._libraries.kernel(code, texts(options), name)


class RawModule:
    """A text of kernels."""

    def __init__(self, launches: _Launches, code: str, options: Sequence[str], cooperative: bool) -> None:
        self._launches, self._code, self._options = launches, code, options
        self._cooperative = cooperative

    def compile(self, log_stream: object = None) -> None:
        """Nothing: it is compiled."""

    def get_function(self, name: str) -> RawKernel:
        """The kernel of this name."""
        return RawKernel(self._launches, self._code, name, self._options, self._cooperative)


class RawKernel:
    """A kernel."""

    def __init__(
        self, launches: _Launches, code: str, name: str, options: Sequence[str], cooperative: bool
    ) -> None:
        self._launches, self._cooperative = launches, cooperative
        self._kernel = launches.kernel(code, options, name)
        self._most_shared = 48 << 10

    def __call__(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        args: Sequence[Any],
        *,
        shared_mem: int = 0,
    ) -> None:
        """Launch it on the current stream."""
        values = [_value(argument) for argument in args]
        stream = self._launches.stream.ptr
        self._kernel.launch(grid, block, values, shared_mem, stream, cooperative=self._cooperative)

    def compile(self, log_stream: object = None) -> None:
        """Nothing: it is compiled."""

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        """Bytes of shared memory that launches may ask for."""
        return self._most_shared

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, most: int) -> None:
        self._kernel.allow(most)
        self._most_shared = most


def _value(argument: Any) -> Value:  # noqa: ANN401 - whatever a file passes
    """An argument as CuPy passes it.

    Raises:
        TypeError: CuPy takes no such argument.
    """
    match argument:
        case Array():
            return _address(argument.data, "an array")
        case Memory() | None:
            return _address(argument, "memory")
        case np.generic():
            return number(argument)
        case np.ndarray():
            return Value(argument.tobytes(), f"an array of NumPy, {argument.dtype}")
        case int() | float():
            return _plain(argument)
    hint = ": write cupy.asarray(tensor), or its data_ptr()" if isinstance(argument, torch.Tensor) else ""
    raise TypeError(f"CuPy passes no {type(argument).__name__} to a kernel{hint}")


def _plain(argument: Any) -> Value:  # noqa: ANN401 - a number
    """A number of Python's, for which CuPy takes the largest type of its kind."""
    if isinstance(argument, float):
        data = np.float64(argument).tobytes()
        return Value(data, "a Python float, which is a double", "cupy.float32(...)")
    if isinstance(argument, bool):
        return Value(np.bool_(argument).tobytes(), "a Python bool")
    kind = np.int64 if argument < 1 << 63 else np.uint64
    return Value(np.asarray(argument, dtype=kind).tobytes(), "a Python int", whole=True)


def _address(memory: Memory | None, described: str) -> Value:
    return Value(np.uint64(0 if memory is None else memory.ptr).tobytes(), described)


def _array(data: Any, dtype: Any = None, **_: object) -> Array:  # noqa: ANN401 - CuPy's
    """The array that a tensor is, without a copy."""
    array = data if isinstance(data, Array) else None
    if isinstance(data, torch.Tensor) and data.is_cuda:
        array = Array(data)
    if array is None:
        raise RefusedError(f"asarray takes tensors on the device here, and gets a {type(data).__name__}")
    if dtype is not None and np.dtype(dtype) != array.dtype:
        raise RefusedError(f"asarray of another type computes on the device: {_COMPUTE}")
    return array


def _contiguous(data: Any, dtype: Any = None) -> Array:  # noqa: ANN401 - CuPy's
    """The array that a contiguous tensor is."""
    array = _array(data, dtype)
    if not array.tensor.is_contiguous():
        raise RefusedError(f"ascontiguousarray of a tensor with gaps computes on the device: {_COMPUTE}")
    return array


def _new(make: Callable[..., torch.Tensor], shape: Any, dtype: Any) -> Array:  # noqa: ANN401 - CuPy's
    return Array(make(shape, dtype=_TYPES[np.dtype(dtype)], device="cuda"))


def _like(make: Callable[..., torch.Tensor], data: Any, dtype: Any) -> Array:  # noqa: ANN401 - CuPy's
    array = _array(data)
    return _new(make, array.shape, array.dtype if dtype is None else dtype)


def _device(libraries: Libraries) -> type:
    """CuPy's class of devices, of which there is one."""

    class Device(nullcontext[None]):
        compute_capability = str(libraries.runtime.capability)

        def __init__(self, device: int = 0) -> None:
            super().__init__()
            self.id = device

        def use(self) -> Device:
            return self

        def synchronize(self) -> None:
            libraries.runtime.synchronize()

    return Device
