"""As much of ``cuda.core`` as a file needs that compiles kernels by NVRTC and launches them.

The judge has built the kernels. It has both names of the module: it was ``cuda.core.experimental`` before.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from grader.runner.inlined import FLAGS, flags_of_program
from grader.runner.pytorch.raw import Libraries, Value, number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.runner.pytorch.raw import Kernel


@dataclass(frozen=True)
class Stream:
    """A stream of the device; ``handle`` is the runtime's, 0 for the stream of the call."""

    handle: int
    _libraries: Libraries

    def sync(self) -> None:
        """Wait for its work."""
        runtime = self._libraries.runtime
        runtime.synchronize_stream(self.handle or runtime.stream)

    def close(self) -> None:
        """Nothing: the device forgets it with the process."""


@dataclass(frozen=True)
class LaunchConfig:
    """How a kernel is launched."""

    grid: int | Sequence[int] = 1
    cluster: object = None
    block: int | Sequence[int] = 1
    shmem_size: int | None = None
    cooperative_launch: bool = False

    def __post_init__(self) -> None:
        if self.cluster is not None:
            raise ValueError("clusters need compute capability 9.0, which is not that of every device here")


class ObjectCode:
    """What a program is compiled to."""

    def __init__(self, libraries: Libraries, code: str, options: Sequence[str]) -> None:
        self._libraries, self._code, self._options = libraries, code, options

    def get_kernel(self, name: str | bytes) -> Kernel:
        """The kernel of this name, or the instance of a template."""
        text = name.decode() if isinstance(name, bytes) else name
        return self._libraries.kernel(self._code, self._options, text)


class Program:
    """A text of kernels."""

    def __init__(
        self,
        libraries: Libraries,
        code: str | bytes,
        code_type: str,
        options: Mapping[str, Any],
    ) -> None:
        if code_type.lower() != "c++":
            raise ValueError(f"a program of the type {code_type!r} is not taken here: hand in C++")
        self._libraries = libraries
        self._code = code.decode() if isinstance(code, bytes) else code
        self._options = flags_of_program(options)

    def compile(self, *_: object, **__: object) -> ObjectCode:
        """What the judge has compiled it to, whatever form and instances are asked for."""
        return ObjectCode(self._libraries, self._code, self._options)

    def close(self) -> None:
        """Nothing: it holds nothing."""


def modules(libraries: Libraries) -> Mapping[str, ModuleType]:
    """The modules by their names.

    Args:
        libraries: what the judge has built of the file.
    """
    runtime = libraries.runtime
    call = Stream(0, libraries)

    class Device:
        arch = str(runtime.capability)
        compute_capability = divmod(runtime.capability, 10)
        default_stream = call

        def __init__(self, device_id: int = 0) -> None:
            self.device_id = device_id or 0

        def set_current(self) -> None:
            """Nothing: it is the only one."""

        def sync(self) -> None:
            runtime.synchronize()

        def create_stream(self, obj: object = None, options: object = None) -> Stream:  # noqa: ARG002 - cuda.core's
            """The stream of an object, or a new one."""
            return Stream(runtime.create_stream(), libraries) if obj is None else _stream(obj, libraries)

    def launch(stream: object, config: LaunchConfig, kernel: Kernel, *arguments: Any) -> None:  # noqa: ANN401
        """Launch a kernel.

        Raises:
            TypeError: the arguments do not fit.
            LaunchError: the device refuses it.
        """
        if config.shmem_size:
            kernel.allow(config.shmem_size)
        kernel.launch(
            _sizes(config.grid),
            _sizes(config.block),
            [_value(argument) for argument in arguments],
            config.shmem_size or 0,
            _stream(stream, libraries).handle,
            cooperative=config.cooperative_launch,
        )

    def program(code: str | bytes, code_type: str, options: Mapping[str, Any] | None = None) -> Program:
        return Program(libraries, code, code_type, options or {})

    names = {
        "Device": Device,
        "Kernel": object,
        "LaunchConfig": LaunchConfig,
        "ObjectCode": ObjectCode,
        "Program": program,
        "ProgramOptions": _options,
        "Stream": Stream,
        "launch": launch,
    }
    cuda, core, experimental = map(ModuleType, ("cuda", "cuda.core", "cuda.core.experimental"))
    vars(experimental).update(names)
    vars(core).update(names, experimental=experimental)
    vars(cuda).update(core=core)
    return {module.__name__: module for module in (cuda, core, experimental)}


def _options(**named: object) -> Mapping[str, object]:
    """The options of a program that say what is built."""
    return {name: value for name, value in named.items() if name in FLAGS}


def _sizes(sizes: int | Sequence[int]) -> Sequence[int]:
    return (sizes,) if isinstance(sizes, int) else sizes


def _stream(stream: Any, libraries: Libraries) -> Stream:  # noqa: ANN401 - whatever has a stream
    """The stream of an object.

    Raises:
        TypeError: it has none.
    """
    if isinstance(stream, Stream):
        return stream
    if hasattr(stream, "__cuda_stream__"):
        _version, handle = stream.__cuda_stream__()
        return Stream(int(handle), libraries)
    if hasattr(stream, "cuda_stream"):
        return Stream(int(stream.cuda_stream), libraries)
    raise TypeError(f"a {type(stream).__name__} is no stream: write Device().create_stream(...)")


def _value(argument: Any) -> Value:  # noqa: ANN401 - whatever a file passes
    """An argument as ``cuda.core`` passes it.

    Raises:
        TypeError: it takes no such argument.
    """
    match argument:
        case np.generic():
            return number(argument)
        case bool():
            return Value(struct.pack("?", argument), "a Python bool")
        case int():
            return Value(struct.pack("=Q", argument & (1 << 64) - 1), "a Python int", whole=True)
        case float():
            data = struct.pack("=d", argument)
            return Value(data, "a Python float, which is a double", "numpy.float32(...)")
    hint = ": write its data_ptr()" if isinstance(argument, torch.Tensor) else ""
    raise TypeError(f"cuda.core passes no {type(argument).__name__} to a kernel{hint}")
