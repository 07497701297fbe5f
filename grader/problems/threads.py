"""How many threads PyTorch uses, where a problem has loaded it: what needs no PyTorch starts without it.

Layer: the standard library.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def keep_to_one_thread() -> None:
    """Let PyTorch use this thread alone for all that it does in it, instead of starting more."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(1)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let PyTorch use ``count`` threads for what this one does.

    A thread that has never asked PyTorch for its number of threads gets the number that any thread set last.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
