"""Arrays in the runner's own memory, for launchers that take host pointers."""

from __future__ import annotations

import ctypes
import mmap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def host_address(data: memoryview | mmap.mmap) -> int:
    """The address of writable bytes."""
    return ctypes.addressof(ctypes.c_char.from_buffer(data))


class HostMemory:
    """Images (guard zone, data, guard zone) in page-aligned memory, which is kept while sizes are equal."""

    def __init__(self) -> None:
        self._sizes: list[int] = []
        self._maps: list[mmap.mmap] = []

    def upload(self, sizes: Sequence[int], payload: memoryview) -> list[int]:
        """Copy the images, which follow each other in ``payload``, to this memory; return their addresses."""
        if list(sizes) != self._sizes:
            self._sizes = list(sizes)
            self._maps = [mmap.mmap(-1, size) for size in sizes]
        offset = 0
        for memory, size in zip(self._maps, sizes, strict=True):
            memory[:] = payload[offset : offset + size]
            offset += size
        return [host_address(memory) for memory in self._maps]

    def content(self, room: Callable[[int], memoryview]) -> memoryview:
        """The images as they are now, one behind the other, in ``room`` for so many bytes."""
        content, offset = room(sum(self._sizes)), 0
        for memory, size in zip(self._maps, self._sizes, strict=True):
            content[offset : offset + size] = memoryview(memory)
            offset += size
        return content
