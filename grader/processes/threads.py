"""Threads: the environment in which numerical libraries start none of their own, and the turns of Python's.

Layer: the standard library.
"""

import sys

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

TURN_SECONDS = 5e-4


def take_short_turns() -> None:
    """Let a thread of this process that waits for Python's interpreter have it sooner than after 5 ms.

    A thread that drives a GPU gives it away in each request to the runner several times, and threads that
    compare outputs take it: the GPU would wait for most of the time.
    """
    sys.setswitchinterval(TURN_SECONDS)
