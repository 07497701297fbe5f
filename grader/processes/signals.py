"""Lets an interrupt wait while results are written, so that none is lost.

Layer: the standard library.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from grader.processes.imports import SIGNALS

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def held_back() -> Iterator[None]:
    """A context at whose end Ctrl-C, SIGTERM and SIGHUP interrupt that came during it.

    Raises:
        KeyboardInterrupt: at the end, if one of them came.
    """
    came: list[int] = []
    handled = [number for number in SIGNALS if signal.getsignal(number) is signal.default_int_handler]
    for number in handled:
        signal.signal(number, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt
