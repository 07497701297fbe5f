"""Results that several threads need: worked out once, unless that fails."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from grader.run.once import Once

if TYPE_CHECKING:
    from collections.abc import Callable


def test_a_second_thread_waits_for_what_the_first_one_works_out() -> None:
    once: Once[int] = Once()
    began, may_end = threading.Event(), threading.Event()
    calls: list[int] = []

    def work_out() -> int:
        calls.append(len(calls))
        began.set()
        may_end.wait(10)
        return 7

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(once.of, "key", work_out)
        assert began.wait(10)
        second = pool.submit(once.of, "key", work_out)
        may_end.set()
        assert (first.result(), second.result()) == (7, 7)
    assert calls == [0]
    assert once.of("other key", lambda: 8) == 8


def test_what_failed_is_worked_out_again() -> None:
    once: Once[int] = Once()

    def fail() -> int:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        once.of("key", fail)
    assert once.of("key", lambda: 7) == 7


def test_what_failed_is_forgotten_while_nobody_looks_anything_up() -> None:
    """The keys are looked up in Python's own code, which shows who is inside."""
    once: Once[int] = Once()
    inside, met = threading.Semaphore(), []

    class Key:
        def __hash__(self) -> int:
            alone = inside.acquire(blocking=False)
            met.append(not alone)
            time.sleep(1e-3)
            if alone:
                inside.release()
            return id(self)

    def fail() -> int:
        raise OSError("no")

    def many(work_out: Callable[[], int]) -> None:
        for _ in range(20):
            with suppress(OSError):
                once.of(Key(), work_out)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(many, (fail, lambda: 7)))
    assert not any(met)
