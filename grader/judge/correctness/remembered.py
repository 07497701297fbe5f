"""A cache of inputs and oracles of cases, for submissions that are judged on the same seed."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from grader.problems.problem import Expectation, KernelProblem, of_slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from grader.judge.correctness.shared import SharedArrays
    from grader.problems.problem import Candidate, Case, Inputs, Oracle, Problem, Slices

    Array = NDArray[np.generic]
    _Key = tuple[object, ...]

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


def remembered(
    problem: Problem, room: Room | None = None, shared: SharedArrays | None = None, *named: object
) -> Problem:
    """``problem`` with a cache of inputs and oracles by case in ``room``; the cached arrays are read-only.

    Of several threads that need the same, one works it out and the others wait for it. So do processes, if
    there is something that they have ``shared``: there, what belongs to the problem is ``named`` so.
    """
    memory = _Memory(problem, room or Room(), shared, named)
    problem = replace(problem, inputs=memory.inputs, oracle=memory.oracle)
    return replace(problem, of_slices=memory.of_slices) if isinstance(problem, KernelProblem) else problem


class _Memory:
    """What is remembered of ``problem``.

    Inputs that are not remembered are recognised as long as anybody has them, so that what was worked out of
    them is not worked out again.
    """

    def __init__(
        self, problem: Problem, room: Room, shared: SharedArrays | None, named: tuple[object, ...]
    ) -> None:
        self._problem, self._room, self._shared, self._named = problem, room, shared, named
        self._inputs: dict[_Key, Inputs] = {}
        self._drawn: WeakValueDictionary[_Key, Inputs] = WeakValueDictionary()
        self._expected: dict[_Key, Mapping[str, Expectation]] = {}
        self._working: defaultdict[_Key, threading.Lock] = defaultdict(threading.Lock)

    def inputs(self, case: Case) -> Inputs:
        key = case.content
        with self._working[key]:
            if (inputs := self._drawn.get(key)) is None:
                self._drawn[key] = inputs = self._inputs_of(key, case)
            return inputs

    def _inputs_of(self, key: _Key, case: Case) -> Inputs:
        """The inputs of ``case``, remembered if they are in a file, or if they are not too large."""
        draw = partial(self._problem.inputs, case)
        inputs, in_file = (
            (draw(), False)
            if self._shared is None
            else self._shared.inputs((*self._named, "inputs", *key), draw)
        )
        arrays = [array for array in inputs.arrays.values() if array is not None]
        for array in arrays:
            array.flags.writeable = False
        small = not case.at_places or sum(array.nbytes for array in arrays) <= MOST_BYTES
        if in_file or (small and self._room.takes(arrays)):
            self._inputs[key] = inputs
        return inputs

    def oracle(self, case: Case, inputs: Inputs) -> Mapping[str, Expectation]:
        key = case.content
        if inputs is not self._drawn.get(key):
            return self._problem.oracle(case, inputs)
        return self._expectations((*key, "oracle"), partial(self._problem.oracle, case, inputs))

    def of_slices(
        self, oracle: Oracle, case: Case, inputs: Inputs, slices: Slices, first: int, length: int
    ) -> Mapping[str, Expectation]:
        assert isinstance(self._problem, KernelProblem)
        key = case.content
        if inputs is not self._drawn.get(key):
            return of_slices(oracle, case, inputs, slices, first, length)
        work_out = partial(self._problem.expected_in, case, inputs, slices, first, length)
        return self._expectations((*key, slices.outputs, first, length), work_out)

    def _expectations(
        self, key: _Key, work_out: Callable[[], Mapping[str, Expectation]]
    ) -> Mapping[str, Expectation]:
        with self._working[key]:
            if (expected := self._expected.get(key)) is not None:
                return expected
            right, in_file = (
                (work_out(), False)
                if self._shared is None
                else self._shared.expectations((*self._named, *key), work_out)
            )
            expectations = {name: _frozen(expectation) for name, expectation in right.items()}
            arrays = [array for expectation in expectations.values() for array in _arrays(expectation)]
            if in_file or self._room.takes(arrays):
                self._expected[key] = expectations
            return expectations


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
