"""Imports the modules of a command: Ctrl-C, SIGTERM and SIGHUP end it at once, and no garbage is looked for.

Layer: the standard library and the records.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from grader.records.exit_codes import ExitCode

if TYPE_CHECKING:
    from collections.abc import Iterator

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def importing() -> Iterator[None]:
    """A context in which these signals end the process at once, because there are no results to keep yet.

    A KeyboardInterrupt would not do: some libraries lose it while they load, or turn it into an ImportError.
    Modules stay until the process ends. To look for garbage among those of PyTorch takes half a second, most
    of it at the end.
    """
    handled = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _leave) for number in handled}
    gc.disable()
    try:
        yield
    finally:
        freeze()
        gc.enable()
        for number, handler in before.items():
            signal.signal(number, handler)


def freeze() -> None:
    """Keep what there is now, modules above all, out of every search for garbage."""
    gc.freeze()
    atexit.register(_unfreeze)


def _unfreeze() -> None:
    # Triton, which PyTorch imports where it is there, prints thirty lines at the end about what is not freed.
    if "triton" in sys.modules:
        gc.unfreeze()


def _leave(_number: int, _frame: object) -> None:
    with suppress(OSError):  # the terminal may be gone
        os.write(2, b"interrupted\n")
    os._exit(ExitCode.INTERRUPTED)
