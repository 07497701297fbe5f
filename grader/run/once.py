"""Results that several threads need, and the first of them works out."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")


class Once(Generic[Result]):
    """A result for each key, kept unless working it out raises."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._results: dict[Hashable, Future[Result]] = {}

    def of(self, key: Hashable, work_out: Callable[[], Result]) -> Result:
        """The result for ``key``, from ``work_out`` if nobody has worked it out or does so now.

        Raises:
            BaseException: what ``work_out`` raises, here and in the threads that wait for it.
        """
        with self._lock:
            earlier = self._results.get(key)
            result = earlier or self._results.setdefault(key, Future())
        if earlier is None:
            try:
                result.set_result(work_out())
            except BaseException as error:
                with self._lock:
                    del self._results[key]
                result.set_exception(error)
                raise
        return result.result()
