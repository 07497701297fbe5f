"""A pool of threads that is interrupted while its tasks begin: one runs, and no other follows."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable


class InterruptedPool(ThreadPoolExecutor):
    """Raises KeyboardInterrupt in the thread that submits once its first task runs, or ``ready`` is set."""

    ready: threading.Event | None = None

    def submit(self, task: Callable[..., Any], /, *args: object, **options: object) -> NoReturn:
        """Start ``task``, and be interrupted before its future is returned."""
        runs = threading.Event()
        future: Future[Any] = super().submit(_told, runs, task, *args, **options)
        assert (self.ready or runs).wait(60), future
        raise KeyboardInterrupt


def _told(runs: threading.Event, task: Callable[..., Any], *args: object, **options: object) -> Any:  # noqa: ANN401 - what it gives
    runs.set()
    return task(*args, **options)
