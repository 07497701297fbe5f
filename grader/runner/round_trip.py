"""One operation of the baseline as the original course ran it: host memory in, host memory out.

Each operation allocates, copies its operands to the device, runs, waits, copies its result back and frees, as
the course's launchers do. A launcher that takes host pointers is timed against a chain of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import ctypes
    from collections.abc import Callable, Sequence

TO_DEVICE, TO_HOST = 1, 2  # cudaMemcpyKind


class DeviceRuntime(Protocol):
    """The calls of ``cupy.cuda.runtime`` that a round trip makes."""

    def malloc(self, size: int) -> int:
        """Device memory."""

    def memcpy(self, to: int, source: int, size: int, kind: int) -> None:
        """Copy and wait."""

    def free(self, pointer: int) -> None:
        """Give device memory back."""


@dataclass(frozen=True)
class Operand:
    """An array of an operation: the argument that is its device pointer, and where it lies on the host."""

    pointer: ctypes.c_void_p
    host: int
    size: int  # bytes


@dataclass(frozen=True)
class RoundTrip:
    """An operation with its arguments; ``result`` and ``operands`` are among them."""

    function: Callable[..., Any]
    arguments: Sequence[Any]
    result: Operand
    operands: Sequence[Operand]

    def run(self, runtime: DeviceRuntime, wait: Callable[[], None]) -> None:
        """Do all of it; ``wait`` returns once the operation has ended."""
        arrays = (self.result, *self.operands)
        for array in arrays:
            array.pointer.value = runtime.malloc(array.size)
        for array in self.operands:
            runtime.memcpy(_address(array), array.host, array.size, TO_DEVICE)
        self.function(*self.arguments)
        wait()
        runtime.memcpy(self.result.host, _address(self.result), self.result.size, TO_HOST)
        for array in arrays:
            runtime.free(_address(array))


def _address(array: Operand) -> int:
    return array.pointer.value or 0
