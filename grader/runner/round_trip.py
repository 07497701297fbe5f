"""One operation of the baseline on host memory, as in the original course.

Each operation allocates device memory, copies its operands there, runs, waits, copies its result back and
frees the memory, as the course's launchers do. A launcher that takes host pointers is timed against a chain
of these.
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
        """Allocate device memory and return its address."""

    def memcpy(self, to: int, source: int, size: int, kind: int) -> None:
        """Copy memory and wait until it is copied."""

    def free(self, pointer: int) -> None:
        """Free device memory."""


@dataclass(frozen=True)
class Operand:
    """An array of an operation: the argument for its device pointer, its host address and its size."""

    pointer: ctypes.c_void_p
    host: int
    size: int  # bytes


@dataclass(frozen=True)
class RoundTrip:
    """An operation with its arguments, which include the pointers of ``result`` and ``operands``.

    ``partial`` says that the operation writes a part of ``result``; the other elements must stay as they are.
    """

    function: Callable[..., Any]
    arguments: Sequence[Any]
    result: Operand
    operands: Sequence[Operand]
    partial: bool = False

    def run(self, runtime: DeviceRuntime, wait: Callable[[], None]) -> None:
        """Run the operation with all its copies; ``wait`` returns once the operation has ended."""
        arrays = (self.result, *self.operands)
        for array in arrays:
            array.pointer.value = runtime.malloc(array.size)
        for array in arrays if self.partial else self.operands:
            runtime.memcpy(_address(array), array.host, array.size, TO_DEVICE)
        self.function(*self.arguments)
        wait()
        runtime.memcpy(self.result.host, _address(self.result), self.result.size, TO_HOST)
        for array in arrays:
            runtime.free(_address(array))


def _address(array: Operand) -> int:
    return array.pointer.value or 0
