"""A cache of inputs and oracles of cases, for submissions that are judged on the same seed."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from grader.problems.problem import Expectation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from grader.problems.problem import Candidate, Case, Inputs, Problem

    Array = NDArray[np.generic]

MOST_BYTES = 1 << 22
"""How large inputs that are remembered may be; drawing larger ones again costs less than the memory."""

MACHINE_SHARE = 16  # this part of the machine's memory in a process, of which a batch has several


class Room:
    """Memory for what is remembered. What comes when it is full is computed anew for each submission."""

    def __init__(self, most_bytes: int | None = None) -> None:
        """At most so many bytes, or ``1 / MACHINE_SHARE`` of the machine's memory."""
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._left = memory // MACHINE_SHARE if most_bytes is None else most_bytes
        self._lock = threading.Lock()

    def takes(self, arrays: Iterable[Array]) -> bool:
        """Whether there was room for ``arrays``, which it is taken up by then."""
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True


def remembered(problem: Problem, room: Room | None = None) -> Problem:
    """``problem`` with a cache of inputs and oracles by case in ``room``; the cached arrays are read-only.

    Of several threads that need the same, one works it out and the others wait for it.
    """
    memory = _Memory(problem, room or Room())
    return replace(problem, inputs=memory.inputs, oracle=memory.oracle)


class _Memory:
    def __init__(self, problem: Problem, room: Room) -> None:
        self._problem, self._room = problem, room
        self._inputs: dict[tuple[str, int], Inputs] = {}
        self._oracles: dict[tuple[str, int], Mapping[str, Expectation]] = {}
        self._working: defaultdict[tuple[str, int], threading.Lock] = defaultdict(threading.Lock)

    def inputs(self, case: Case) -> Inputs:
        key = case.name, case.seed
        with self._working[key]:
            if key not in self._inputs:
                inputs = self._problem.inputs(case)
                arrays = [array for array in inputs.arrays.values() if array is not None]
                if case.at_places and sum(array.nbytes for array in arrays) > MOST_BYTES:
                    return inputs
                for array in arrays:
                    array.flags.writeable = False
                if not self._room.takes(arrays):
                    return inputs
                self._inputs[key] = inputs
            return self._inputs[key]

    def oracle(self, case: Case, inputs: Inputs) -> Mapping[str, Expectation]:
        key = case.name, case.seed
        if inputs is not self._inputs.get(key):
            return self._problem.oracle(case, inputs)
        with self._working[key]:
            if key not in self._oracles:
                oracle = self._problem.oracle(case, inputs)
                expectations = {name: _frozen(expectation) for name, expectation in oracle.items()}
                if not self._room.takes(
                    array for expectation in expectations.values() for array in _arrays(expectation)
                ):
                    return expectations
                self._oracles[key] = expectations
            return self._oracles[key]


def _frozen(expectation: Expectation) -> Expectation:
    """``expectation`` with read-only arrays, whose other candidates are computed once."""
    return Expectation(
        _read_only(expectation.candidates),
        expectation.finite_only,
        cache(lambda: _read_only(expectation.further())),
    )


def _arrays(expectation: Expectation) -> Iterable[Array]:
    for candidate in expectation.candidates:
        yield from (candidate.expected, candidate.allowed)


def _read_only(candidates: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    for candidate in candidates:
        candidate.expected.flags.writeable = False
        candidate.allowed.flags.writeable = False
    return candidates
