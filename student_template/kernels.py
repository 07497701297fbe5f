"""Given: hands PyTorch tensors to the launchers that ``launchers.py`` declares.

    launch("launch_something", output, input, None, rows, 1e-6)

The arguments are those of the C function in its order, without the streams: work goes to PyTorch's current
stream. A tensor becomes its device pointer and None a null pointer. On a GPU nothing is copied and nobody
waits. On the simulator tensors live on the CPU, so ``launch`` copies them to the simulated device and what is
not const back: the same file of yours runs on both, with its tensors on ``DEVICE``.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path
from typing import Any

import torch
from launchers import LAUNCHERS, SOURCES
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LIBRARIES = "KERNEL_LIBRARIES"  # environment: paths of the built libraries, separated by colons
MEMORY = "KERNEL_MEMORY"  # environment: "host" if the launchers take host pointers and copy themselves

SCALARS = {"int": (int, ctypes.c_int), "bool": (bool, ctypes.c_bool), "float": (float, ctypes.c_float)}
DTYPES = {"float": torch.float32, "__half": torch.float16, "__nv_bfloat16": torch.bfloat16}
"""What is passed by value, and the elements of arrays, by what C calls them."""

TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind


def typed(entry_point: str, dtype: torch.dtype) -> str:
    """The launcher for arrays of ``dtype``, where each type has its own: its name ends with the type's."""
    return f"{entry_point}_{str(dtype).removeprefix('torch.')}"


def launch(entry_point: str, *arguments: Tensor | float | None) -> None:
    """Call a launcher.

    Raises:
        TypeError: the arguments are not those of the C function.
        ValueError: a tensor is not dense memory of the type that the kernel takes, on ``DEVICE``.
        RuntimeError: CUDA reports an error, or there is no such function.
    """
    check(entry_point, *arguments)
    declared, wanted = _declared(entry_point)
    device = _Direct() if (DEVICE == "cuda") != (os.environ.get(MEMORY) == "host") else _Staged()
    values = [
        _value(device, parameter, argument) for parameter, argument in zip(wanted, arguments, strict=True)
    ]
    streams = [ctypes.c_void_p(device.stream())] * (len(declared) - len(wanted))
    _function(entry_point)(*values, *streams)
    device.finish()


def check(entry_point: str, *arguments: Tensor | float | None) -> None:
    """Check the arguments of a launcher, as ``launch`` does before it calls it.

    Raises:
        TypeError: they are not those of the C function.
        ValueError: a tensor is not dense memory of the type that the kernel takes, on ``DEVICE``.
    """
    _, wanted = _declared(entry_point)
    if len(arguments) != len(wanted):
        raise TypeError(
            f"{entry_point} takes {len(wanted)} arguments, not {len(arguments)}: {', '.join(wanted)}"
        )
    for parameter, argument in zip(wanted, arguments, strict=True):
        _check(entry_point, parameter, argument)


def build(folder: Path) -> None:
    """Compile the .cu files of ``folder`` into ``folder/build`` if they changed, for ``launch`` to use.

    Raises:
        RuntimeError: there is no nvcc, or it refuses the file; its own words are in the message.
    """
    nvcc = _nvcc()
    (folder / "build").mkdir(exist_ok=True)
    newest = max(path.stat().st_mtime for path in folder.iterdir() if path.suffix in {".cu", ".cuh", ".h"})
    number = "{}{}".format(*torch.cuda.get_device_capability()) if DEVICE == "cuda" else ""
    native = ["-gencode", f"arch=compute_{number},code=sm_{number}"] if number else []
    options = [
        "-O3",
        "-std=c++17",
        "-shared",
        "-Xcompiler",
        "-fPIC",
        "--no-compress",
        "-lineinfo",
    ]
    libraries = []
    for source in SOURCES:
        library = folder / "build" / f"{source}.so"
        libraries.append(str(library.resolve()))
        if library.exists() and library.stat().st_mtime > newest:
            continue
        architectures = ["-gencode", "arch=compute_80,code=compute_80", *native]
        command = [*nvcc, *options, *architectures, "-o", str(library), str(folder / source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{source} did not compile:\n{done.stdout}{done.stderr}")
    os.environ[LIBRARIES] = ":".join(libraries)


def _nvcc() -> list[str]:
    """The compiler, and how it links with the CUDA runtime: of a toolkit, or of the wheels beside PyTorch."""
    home = Path(os.environ.get("CUDA_HOME", "/"), "bin")
    if nvcc := shutil.which("nvcc") or shutil.which("nvcc", path=str(home)):
        return [nvcc, "-cudart", "shared"]
    wheels = Path(sysconfig.get_path("purelib"), "nvidia", "cu13")
    if nvcc := shutil.which("nvcc", path=str(wheels / "bin")):
        return [nvcc, "-cudart", "none", f"-L{wheels / 'lib'}", "-l:libcudart.so.13"]
    raise RuntimeError(
        "nvcc was not found. Put it on PATH, set CUDA_HOME to the toolkit's folder, or install its wheels: "
        "python -m pip install 'kernel-grader[cuda]'"
    )


class _Direct:
    """Pointers that the launcher can use as they are."""

    def pointer(self, tensor: Tensor, *, written: bool) -> int:  # noqa: ARG002 - as _Staged
        return tensor.data_ptr()

    def stream(self) -> int:
        return torch.cuda.current_stream().cuda_stream if DEVICE == "cuda" else 0

    def finish(self) -> None:
        """Nothing to wait for."""


class _Staged:
    """Copies on the other side: of CPU tensors on the simulated device, or of a GPU's for host launchers."""

    def __init__(self) -> None:
        self._held: list[tuple[Tensor, Any, bool]] = []

    def pointer(self, tensor: Tensor, *, written: bool) -> int:
        if DEVICE == "cuda":
            copy = tensor.cpu()
            self._held.append((tensor, copy, written))
            return copy.data_ptr()
        address = ctypes.c_void_p()
        _cuda("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(tensor.nbytes))
        self._copy(address, ctypes.c_void_p(tensor.data_ptr()), tensor.nbytes, TO_DEVICE)
        self._held.append((tensor, address, written))
        return address.value or 0

    def stream(self) -> int:
        return torch.cuda.current_stream().cuda_stream if DEVICE == "cuda" else _simulated_stream()

    def finish(self) -> None:
        if DEVICE != "cuda":
            _cuda("cudaGetLastError")
            _cuda("cudaStreamSynchronize", ctypes.c_void_p(_simulated_stream()))
        for tensor, held, written in self._held:
            if DEVICE == "cuda":
                tensor.copy_(held) if written else None
                continue
            if written:
                self._copy(ctypes.c_void_p(tensor.data_ptr()), held, tensor.nbytes, TO_HOST)
            _cuda("cudaFree", held)

    @staticmethod
    def _copy(to: ctypes.c_void_p, source: ctypes.c_void_p, size: int, kind: int) -> None:
        _cuda("cudaMemcpy", to, source, ctypes.c_size_t(size), kind)


def _declared(entry_point: str) -> tuple[list[str], list[str]]:
    """The parameters of the C function, and those of them that ``launch`` takes."""
    declared = [parameter.strip() for parameter in LAUNCHERS[entry_point].split(",")]
    return declared, [parameter for parameter in declared if not parameter.startswith("cudaStream_t")]


def _declared(entry_point: str) -> tuple[list[str], list[str]]:
    """The parameters of the C function, and those of them that ``launch`` takes."""
    declared = [parameter.strip() for parameter in LAUNCHERS[entry_point].split(",")]
    return declared, [parameter for parameter in declared if not parameter.startswith("cudaStream_t")]


def _declared(entry_point: str) -> tuple[list[str], list[str]]:
    """The parameters of the C function, and those of them that ``launch`` takes."""
    declared = [parameter.strip() for parameter in LAUNCHERS[entry_point].split(",")]
    return declared, [parameter for parameter in declared if not parameter.startswith("cudaStream_t")]


def _check(entry_point: str, parameter: str, argument: object) -> None:
    kind = parameter.removeprefix("const ").partition(" ")[0]
    if kind in SCALARS:
        if type(argument) is not SCALARS[kind][0]:  # a bool is an int, too
            raise TypeError(f"{entry_point}: {parameter} is {argument!r}, not of type {kind}")
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
    return SCALARS[parameter.partition(" ")[0]][1](argument)


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
        f"no built library has {entry_point}: call build(folder) first, with the folder of your .cu files"
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
