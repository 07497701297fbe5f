"""Kernels that a file compiles when it runs: the judge has built them, this launches them.

``grader/languages/inline/include/grader/kernels.h`` has the other side.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from grader.runner.inlined import key_of_kernels
from grader.runner.raised import RefusedError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from grader.runner.triton.runtime import Runtime

_POINTERS = ("grader_kernel",)
_TEXTS = ("grader_name", "grader_instance", "grader_error", "grader_words")


class LaunchError(RuntimeError):
    """A kernel could not be launched; the text is CUDA's."""


class NoKernelError(RuntimeError):
    """There is no such kernel; the text says which there are."""


@dataclass(frozen=True)
class Value:
    """An argument of a kernel.

    Attributes:
        data: its bytes.
        described: what it is, for the message where its size is wrong.
        instead: what to write where its size is wrong; "" where nothing is known.
        whole: whether it is a whole number, of which a kernel may take the lower bytes.
    """

    data: bytes
    described: str
    instead: str = ""
    whole: bool = False


def number(argument: np.generic) -> Value:
    """A number of NumPy's as an argument."""
    whole = isinstance(argument, np.integer)
    return Value(argument.tobytes(), f"a {argument.dtype} of NumPy", whole=whole)


class Libraries:
    """What the judge has built of the texts of a file.

    Args:
        paths: of the libraries, by the key of each text.
        runtime: of the device.
    """

    def __init__(self, paths: Mapping[str, str], runtime: Runtime) -> None:
        self._paths = paths
        self.runtime = runtime
        self._loaded: dict[str, ctypes.CDLL] = {}

    def kernel(self, code: str, options: Sequence[str], name: str) -> Kernel:
        """The kernel ``name`` of a text that is compiled with these options.

        Raises:
            RefusedError: the judge has not built that text.
            NoKernelError: it has no such kernel.
        """
        library = self._library(key_of_kernels(code, options))
        host = library.grader_kernel(name.encode())
        instances = _names(library.grader_instance)
        if name in instances:
            function = getattr(library, f"grader_instance_{instances.index(name)}")
            function.restype = ctypes.c_void_p
            host = function()
        if host is None:
            listed = ", ".join([*instances, *_names(library.grader_name)]) or "none"
            raise NoKernelError(
                f"CUDA_ERROR_NOT_FOUND: there is no kernel {name}; the text has {listed}. "
                f'Write extern "C" before __global__, or name an instance of a template by name_expressions'
            )
        return Kernel(name, library, host, self.runtime)

    def _library(self, key: str) -> ctypes.CDLL:
        if key not in self._loaded:
            if key not in self._paths:
                raise RefusedError("the file compiles other texts than stand in the call: write them there")
            library = ctypes.CDLL(self._paths[key], mode=os.RTLD_NOW)
            for function in _POINTERS:
                getattr(library, function).restype = ctypes.c_void_p
            for function in _TEXTS:
                getattr(library, function).restype = ctypes.c_char_p
            library.grader_bytes.restype = ctypes.c_long
            self._loaded[key] = library
        return self._loaded[key]


class Kernel:
    """A kernel that can be launched."""

    def __init__(self, name: str, library: ctypes.CDLL, host: int, runtime: Runtime) -> None:
        self.name = name
        self._library = library
        self._host = ctypes.c_void_p(host)
        self._runtime = runtime
        self._bytes = self._sizes()

    def _sizes(self) -> list[int] | None:
        """The bytes of each parameter; None where the runtime does not tell."""
        sizes: list[int] = []
        while (size := self._library.grader_bytes(self._host, ctypes.c_size_t(len(sizes)))) > 0:
            sizes.append(size)
        return None if size < 0 else sizes

    def allow(self, shared: int) -> None:
        """Let launches ask for so many bytes of shared memory.

        Raises:
            LaunchError: the device has less.
        """
        self._check(self._library.grader_allow(self._host, ctypes.c_int(shared)), f"{shared} bytes of it")

    def launch(
        self,
        grid: Sequence[int],
        block: Sequence[int],
        values: Sequence[Value],
        shared: int,
        stream: int,
        *,
        cooperative: bool = False,
    ) -> None:
        """Launch it on ``stream``, or on that of the call where that is the default stream.

        Raises:
            TypeError: the arguments do not fit.
            LaunchError: the device refuses it.
        """
        self._fit(values)
        sizes = (ctypes.c_uint * 6)(*_three(grid), *_three(block))
        buffers = [ctypes.create_string_buffer(value.data, max(1, len(value.data))) for value in values]
        pointers = (ctypes.c_void_p * max(1, len(buffers)))(*map(ctypes.addressof, buffers))
        error = self._library.grader_launch(
            self._host,
            sizes,
            pointers,
            ctypes.c_size_t(shared),
            ctypes.c_void_p(stream or self._runtime.stream),
            ctypes.c_int(cooperative),
        )
        described = f"grid {tuple(sizes[:3])}, block {tuple(sizes[3:])}, {shared} bytes of shared memory"
        self._check(error, described)

    def _fit(self, values: Sequence[Value]) -> None:
        if self._bytes is None:
            return
        if len(values) != len(self._bytes):
            raise TypeError(
                f"the kernel {self.name} takes {len(self._bytes)} arguments and gets {len(values)}"
            )
        for number, (value, size) in enumerate(zip(values, self._bytes, strict=True), 1):
            if len(value.data) == size or (value.whole and len(value.data) > size):
                continue
            instead = f": write {value.instead}" if value.instead else ""
            raise TypeError(
                f"argument {number} of the kernel {self.name} has {size} bytes and gets {value.described}, "
                f"of {len(value.data)} bytes{instead}"
            )

    def _check(self, error: int, described: str) -> None:
        if error:
            name, words = self._library.grader_error(error), self._library.grader_words(error)
            raise LaunchError(f"{name.decode()}: {words.decode()} (the kernel {self.name} with {described})")


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    """Sizes in x, y and z, of which the last ones are 1 where they are not said."""
    x, y, z = (*(int(size) for size in sizes), 1, 1, 1)[:3]
    return x, y, z


def _names(function: ctypes._NamedFuncPointer) -> list[str]:
    """The texts that a function of a library gives for 0, 1 and so on."""
    names: list[str] = []
    while (name := function(ctypes.c_size_t(len(names)))) is not None:
        names.append(name.decode())
    return names
