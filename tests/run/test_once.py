"""Results that several threads need: worked out once, unless that fails."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from grader.run.once import Once


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
