"""Memory that judge and runner both map, in which the larger payloads of their frames lie.

The judge makes it, and the runner inherits its descriptor. Its size is sealed, because a runner that made it
smaller would end the judge with SIGBUS. Pages take memory once they are written. The submission's code can
write to it at any time, so whatever the judge gets there it copies, once, before it looks at it. It holds
nothing but what the other side is sent anyway.

Layer: standard library only.
"""

from __future__ import annotations

import fcntl
import mmap
import os

VARIABLE = "GRADER_SHARED_FD"
SHARED_BYTES = 2 << 30  # larger payloads go through the pipes
SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def make() -> int:
    """The descriptor of new memory, without content, whose size nobody can change."""
    descriptor = os.memfd_create("shared", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.truncate(descriptor, SHARED_BYTES)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    return descriptor


def mapped(descriptor: int) -> memoryview:
    """The memory, for reading and writing, until nobody refers to it any more."""
    return memoryview(mmap.mmap(descriptor, SHARED_BYTES))
