"""Given: hands PyTorch tensors to the launchers in rglru_kernel.cu.

    launch(typed("launch_rglru_forward", x.dtype), h, x, gx, ga, c, h0, batch, length, width)

The arguments are those of the C function in its order, without the stream: work goes to PyTorch's current
stream. A tensor becomes its device pointer and None a null pointer. On a GPU nothing is copied and nobody
waits. On the simulator tensors live on the CPU, so ``launch`` copies them to the simulated device and what is
not const back: the same ``rglru.py`` runs on both, with its tensors on ``DEVICE``.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from pathlib import Path

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LIBRARIES = "KERNEL_LIBRARIES"  # environment: paths of the built libraries, separated by colons
SOURCE = "rglru_kernel.cu"

DTYPES = {"float": torch.float32, "__half": torch.float16, "__nv_bfloat16": torch.bfloat16}
_NAMES = {"float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16"}
_DECLARED = {
    "launch_linear_scan": (
        "T* h, const T* a, const T* b, const float* h0, int batch, int length, int width, cudaStream_t stream"
    ),
    "launch_rglru_forward": (
        "T* h, const T* x, const T* gx, const T* ga, const float* c, const float* h0, int batch, int length, "
        "int width, cudaStream_t stream"
    ),
    "launch_rglru_backward": (
        "T* dx, T* dgx, T* dga, float* dc, float* dh0, const T* dh, const T* x, const T* gx, const T* ga, "
        "const float* c, const T* h, const float* h0, int batch, int length, int width, cudaStream_t stream"
    ),
}

LAUNCHERS = {
    f"{name}_{dtype}": declared.replace("T*", f"{spelling}*")
    for name, declared in _DECLARED.items()
    for dtype, spelling in _NAMES.items()
}
"""The entry points as C declares them."""

TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind


def typed(entry_point: str, dtype: torch.dtype) -> str:
    """The launcher for arrays of ``dtype``: ``typed("launch_rglru_forward", torch.float32)``."""
    return f"{entry_point}_{str(dtype).removeprefix('torch.')}"


def launch(entry_point: str, *arguments: Tensor | float | None) -> None:
    """Call a launcher.

    Raises:
        TypeError: the arguments are not those of the C function.
        ValueError: a tensor is not dense memory of the type that the kernel takes, on ``DEVICE``.
        RuntimeError: CUDA reports an error, or there is no such function.
    """
    declared = [parameter.strip() for parameter in LAUNCHERS[entry_point].split(",")]
    wanted = [parameter for parameter in declared if not parameter.startswith("cudaStream_t")]
    if len(arguments) != len(wanted):
        raise TypeError(
            f"{entry_point} takes {len(wanted)} arguments, not {len(arguments)}: {', '.join(wanted)}"
        )
    for parameter, argument in zip(wanted, arguments, strict=True):
        _check(entry_point, parameter, argument)
    device = _Direct() if DEVICE == "cuda" else _Staged()
    values = [
        _value(device, parameter, argument) for parameter, argument in zip(wanted, arguments, strict=True)
    ]
    _function(entry_point)(*values, ctypes.c_void_p(device.stream()))
    device.finish()


def build(folder: Path) -> None:
    """Compile the kernels of ``folder`` into ``folder/build`` if they changed, for ``launch`` to use.

    Raises:
        RuntimeError: there is no nvcc, or it refuses the file; its own words are in the message.
    """
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        raise RuntimeError("nvcc was not found. Put it on PATH.")
    (folder / "build").mkdir(exist_ok=True)
    library = folder / "build" / f"{SOURCE}.so"
    os.environ[LIBRARIES] = str(library.resolve())
    newest = max(path.stat().st_mtime for path in folder.iterdir() if path.suffix in {".cu", ".cuh", ".h"})
    if library.exists() and library.stat().st_mtime > newest:
        return
    options = ["-O3", "-std=c++17", "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-lineinfo"]
    if DEVICE == "cuda":
        options.append("-arch=sm_{}{}".format(*torch.cuda.get_device_capability()))
    command = [nvcc, *options, "-o", str(library), str(folder / SOURCE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{SOURCE} did not compile:\n{done.stdout}{done.stderr}")


class _Direct:
    """Pointers that the launcher can use as they are."""

    def pointer(self, tensor: Tensor, *, written: bool) -> int:  # noqa: ARG002 - as _Staged
        return tensor.data_ptr()

    def stream(self) -> int:
        return torch.cuda.current_stream().cuda_stream

    def finish(self) -> None:
        """Nothing to wait for."""


class _Staged:
    """Copies of CPU tensors on the simulated device."""

    def __init__(self) -> None:
        self._held: list[tuple[Tensor, ctypes.c_void_p, bool]] = []

    def pointer(self, tensor: Tensor, *, written: bool) -> int:
        address = ctypes.c_void_p()
        _cuda("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(tensor.nbytes))
        self._copy(address, ctypes.c_void_p(tensor.data_ptr()), tensor.nbytes, TO_DEVICE)
        self._held.append((tensor, address, written))
        return address.value or 0

    def stream(self) -> int:
        return _simulated_stream()

    def finish(self) -> None:
        _cuda("cudaGetLastError")
        _cuda("cudaStreamSynchronize", ctypes.c_void_p(_simulated_stream()))
        for tensor, held, written in self._held:
            if written:
                self._copy(ctypes.c_void_p(tensor.data_ptr()), held, tensor.nbytes, TO_HOST)
            _cuda("cudaFree", held)

    @staticmethod
    def _copy(to: ctypes.c_void_p, source: ctypes.c_void_p, size: int, kind: int) -> None:
        _cuda("cudaMemcpy", to, source, ctypes.c_size_t(size), kind)


def _check(entry_point: str, parameter: str, argument: object) -> None:
    kind = parameter.removeprefix("const ").partition(" ")[0]
    if kind == "int":
        if not isinstance(argument, int) or isinstance(argument, bool):
            raise TypeError(f"{entry_point}: {parameter} is {argument!r}, not an int")
    elif kind == "float":
        if not isinstance(argument, float):
            raise TypeError(f"{entry_point}: {parameter} is {argument!r}, not a float")
    elif isinstance(argument, Tensor):
        dtype = DTYPES[kind.removesuffix("*")]
        if argument.dtype is not dtype or argument.device.type != DEVICE:
            what = f"{argument.dtype} on {argument.device}"
            raise ValueError(f"{entry_point}: {parameter} is {what}; the kernel takes {dtype} on {DEVICE}")
        if not argument.is_contiguous():
            shape = f"shape {tuple(argument.shape)}, strides {argument.stride()}"
            raise ValueError(
                f"{entry_point}: {parameter} is not contiguous ({shape}); the kernel takes dense memory"
            )
    elif argument is not None:
        raise TypeError(f"{entry_point}: {parameter} is {argument!r}, not a tensor or None")


def _value(device: _Direct | _Staged, parameter: str, argument: Tensor | float | None) -> object:
    if isinstance(argument, Tensor):
        return ctypes.c_void_p(device.pointer(argument, written=not parameter.startswith("const")))
    if argument is None:
        return ctypes.c_void_p(None)
    return ctypes.c_float(argument) if isinstance(argument, float) else ctypes.c_int(argument)


@cache
def _function(entry_point: str) -> Any:
    """The C function, from the first library that has it."""
    for path in filter(None, os.environ.get(LIBRARIES, "").split(":")):
        try:
            function = getattr(ctypes.CDLL(path), entry_point)
        except AttributeError:
            continue
        function.restype = None
        return function
    raise RuntimeError(
        f"no built library has {entry_point}: call build(folder) first, with the folder of your kernels"
    )


@cache
def _runtime() -> ctypes.CDLL:
    """The CUDA runtime that the libraries were linked with."""
    runtime = ctypes.CDLL("libcudart.so.13")
    runtime.cudaGetErrorString.restype = ctypes.c_char_p
    return runtime


def _cuda(name: str, *arguments: object) -> None:
    if code := getattr(_runtime(), name)(*arguments):
        raise RuntimeError(f"{name}: {_runtime().cudaGetErrorString(code).decode()}")


@cache
def _simulated_stream() -> int:
    """A stream that does not wait for the default stream, like the one that a grader passes."""
    stream = ctypes.c_void_p()
    _cuda("cudaStreamCreateWithFlags", ctypes.byref(stream), 1)
    return stream.value or 0
