"""Calls the student's library, and the CUDA runtime that it is linked against, through ctypes."""

from __future__ import annotations

import ctypes
import os
import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any

CTYPES = {
    "int": ctypes.c_int,
    "long": ctypes.c_longlong,
    "bool": ctypes.c_bool,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
_LISTS = {"ints": ctypes.c_int, "longs": ctypes.c_longlong}
"""Arrays that the host reads, by kind: what they hold."""
_FIELDS = {
    "bool": ctypes.c_bool,
    "int8": ctypes.c_int8,
    "int16": ctypes.c_int16,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
    "uint16": ctypes.c_uint16,
    "uint32": ctypes.c_uint32,
    "uint64": ctypes.c_uint64,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
}
"""What fields of structs are, by the names of element types."""
NON_BLOCKING = 1  # cudaStreamNonBlocking
DRIVER = "libcuda.so.1"


@dataclass(frozen=True)
class UnloadableError(Exception):
    """The dynamic linker cannot load the library; ``symbol`` is the missing symbol, "" if none is missing."""

    text: str
    symbol: str = ""


class CudaError(Exception):
    """A runtime call failed; the text has CUDA's name and explanation of the error, and the call."""


class NoMemoryError(Exception):
    """The device has too little free memory for the runner's own arrays; the text is CUDA's message."""


class UnsupportedError(Exception):
    """The machine lacks something that the runner itself needs; the text names it."""


class Runtime:
    """The calls of libcudart, and on a GPU of the driver, that the runner itself needs."""

    def __init__(self, name: str) -> None:
        self._library = ctypes.CDLL(name, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        self._library.cudaGetErrorName.restype = ctypes.c_char_p
        self._library.cudaGetErrorString.restype = ctypes.c_char_p

    def check(self, code: int, where: str) -> None:
        """Raise CudaError if ``code`` is an error."""
        if code:
            name, text = self._library.cudaGetErrorName(code), self._library.cudaGetErrorString(code)
            raise CudaError(f"{name.decode()}: {text.decode()} ({where})")

    def call(self, name: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever ctypes passes on
        """Call ``name`` and raise CudaError if it fails."""
        self.check(getattr(self._library, name)(*arguments), name)

    def drive(self, name: str, *arguments: Any) -> None:  # noqa: ANN401 - whatever ctypes passes on
        """Call ``name`` of the driver, whose error codes are those of the runtime.

        Raises:
            CudaError: the call failed.
            UnsupportedError: the driver is too old to have this function.
        """
        if not hasattr(self._driver, name):
            raise UnsupportedError(f"the driver has no {name}: install the driver of CUDA 12.5 or newer")
        self.check(getattr(self._driver, name)(*arguments), name)

    @cached_property
    def _driver(self) -> ctypes.CDLL:
        return ctypes.CDLL(DRIVER)

    def settle(self) -> None:
        """Wait for all work of the device, and raise CudaError for an error since the last call."""
        self.check(self._library.cudaGetLastError(), "when the launcher returned")
        self.check(self._library.cudaDeviceSynchronize(), "while its kernels ran")
        self.check(self._library.cudaGetLastError(), "after its kernels ran")

    def stream(self) -> int:
        """A new stream that does not wait for the default stream."""
        handle = ctypes.c_void_p()
        self.call("cudaStreamCreateWithFlags", ctypes.byref(handle), NON_BLOCKING)
        return handle.value or 0


def load(path: str, entry_points: list[str]) -> dict[str, Any]:
    """The entry points of the library at ``path``.

    Raises:
        UnloadableError: the library cannot be loaded, or lacks an entry point.
    """
    try:
        library = ctypes.CDLL(path, mode=os.RTLD_NOW)
    except OSError as error:
        missing = re.search(r"undefined symbol: (\w+)", str(error))
        raise UnloadableError(str(error), missing[1] if missing else "") from None
    functions = {}
    for name in entry_points:
        try:
            function = getattr(library, name)
        except AttributeError:
            raise UnloadableError(f'the library has no extern "C" function {name}', name) from None
        function.restype = None
        functions[name] = function
    return functions


def argument(kind: str, value: Any, pointers: list[int], streams: list[int]) -> Any:  # noqa: ANN401
    """The ctypes value for an argument ``[kind, value]`` of a request."""
    if kind == "pointer":
        return ctypes.c_void_p(value)
    if kind in {"array", "changed"}:
        return ctypes.c_void_p(pointers[value])
    if kind == "stream":
        return ctypes.c_void_p(streams[value])
    if kind in _LISTS:
        return (_LISTS[kind] * len(value))(*value)
    if kind == "struct":
        return _struct(value)
    return CTYPES[kind](value)


def _struct(fields: list[list[Any]]) -> ctypes.Structure:
    """A struct with these fields, type and number, which lie where C++ puts them."""
    described = [(f"field_{number}", _FIELDS[kind]) for number, (kind, _) in enumerate(fields)]
    made: ctypes.Structure = type("Passed", (ctypes.Structure,), {"_fields_": described})(
        *(number for _, number in fields)
    )
    return made
