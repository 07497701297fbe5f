"""Whether timed calls computed what they were asked: fresh contents for them, and their outputs afterwards.

A *base* is inputs drawn afresh. A *content* is a base whose arrays are rotated by some rows
(``KernelProblem.turning``): a few bases give a content of its own to every call, at the price of a copy on
the device, and the oracle of the base tells what is right for all of them.

After each sweep of the submission a run of slices, drawn only then, is read from every slot; and twice per
case all that one call wrote. They are compared when nothing is being timed.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import torch

from grader.devices.timed import Content, Piece
from grader.judge.correctness.comparison import compare
from grader.problems.problem import Candidate, Expectation, Role, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from random import SystemRandom

    from numpy.typing import NDArray

    from grader.devices.timed import TimedSession
    from grader.problems.problem import Case, Inputs, KernelProblem

    Array = NDArray[np.generic]
    Mask = NDArray[np.bool_]

CONTENTS = 8  # different ones at least, as far as there are slots
SAMPLED_INPUTS = 1 << 16  # elements per sweep that the oracle works through
SAMPLED_OUTPUTS = 1 << 18  # elements per sweep that are read and compared
CHUNK = 1 << 17  # elements of a slice run: all of the oracle's steps stay in a core's cache
MOST_THREADS = 16


def threads() -> ThreadPoolExecutor:
    """The threads that draw, compute oracles and compare: NumPy leaves the interpreter to the others.

    Each of them is one thread, also within PyTorch, which would start as many again in each.
    """
    count = min(MOST_THREADS, os.cpu_count() or 1)
    return ThreadPoolExecutor(count, initializer=partial(torch.set_num_threads, 1))


@dataclass(frozen=True)
class Bases:
    """Fresh inputs of one case, and by how many places the turning arrays can be rotated."""

    inputs: tuple[Inputs, ...]
    turns: int

    @property
    def arrays(self) -> list[dict[str, Array]]:
        """The arrays of each base."""
        return [
            {name: array for name, array in inputs.arrays.items() if array is not None}
            for inputs in self.inputs
        ]

    def contents(self, slots: int, random: SystemRandom) -> list[Content]:
        """A content for each slot, of every base as often as of any other, give or take one."""
        order = random.sample(range(len(self.inputs)), len(self.inputs))
        return [Content(order[slot % len(order)], random.randrange(self.turns)) for slot in range(slots)]


def turns(problem: KernelProblem, given: Inputs) -> int:
    """By how many places the arrays of ``given`` can be rotated; 1 if they cannot."""
    lengths = {
        array.shape[0]
        for name, array in given.arrays.items()
        if name in problem.turning and array is not None
    }
    return lengths.pop() if lengths else 1


def draw(
    problem: KernelProblem, case: Case, seeds: Iterator[int], slots: int, *, novel: bool = False
) -> Bases:
    """As many bases as ``slots`` contents need, the first ones of ``seeds``.

    Where contents are to be ``novel``, each slot needs a base of its own: rotation moves rows, and whoever
    remembers results by row, or a sum over all rows, has met them with the first content of a base.
    """
    first = problem.inputs(replace(case, seed=next(seeds)))
    places = turns(problem, first)
    count = slots if novel else -(-min(slots, CONTENTS) // places)
    others = (problem.inputs(replace(case, seed=next(seeds))) for _ in range(count - 1))
    return Bases((first, *others), places)


@dataclass(frozen=True)
class _Sample:
    """Slices ``first`` to ``first + count`` of the bases, as the calls of a sweep left them.

    Attributes:
        calls: numbers of the calls.
        contents: what they were called with.
        found: per output, what each of the calls wrote there: [calls, count, elements].
    """

    slices: Slices
    first: int
    count: int
    bases: Bases
    calls: tuple[int, ...]
    contents: tuple[Content, ...]
    found: Mapping[str, Array]


class Verifier:
    """Takes samples of the outputs of one case's timed calls, and compares them when asked to."""

    def __init__(
        self, problem: KernelProblem, case: Case, pool: ThreadPoolExecutor, slots: int, random: SystemRandom
    ) -> None:
        self._problem, self._case, self._pool = problem, case, pool
        self._slots, self._random = slots, random
        written = {array.name for array in problem.arrays}
        self._slices = [
            replace(slices, outputs=tuple(name for name in slices.outputs if name in written))
            for slices in problem.slices or (_whole(problem),)
        ]
        self._samples: list[_Sample] = []
        self._calls: set[int] = set()
        self._wrong: set[int] = set()
        self._early = 0
        self._next = 0

    @property
    def verified(self) -> int:
        """Calls of which anything was compared."""
        return len(self._calls)

    @property
    def wrong(self) -> int:
        """Calls of which anything was wrong."""
        return len(self._wrong)

    @property
    def early(self) -> int:
        """Calls that were not made and whose outputs were written all the same."""
        return self._early

    def sample(
        self,
        session: TimedSession,
        bases: Bases,
        contents: Sequence[Content],
        *,
        whole: bool = False,
        made: int | None = None,
    ) -> None:
        """Read what the sweep that has just ended left in every slot, or all that one slot holds too.

        Of one that ended after ``made`` calls, the slots behind must hold what restoring left there.
        """
        calls = range(self._next, self._next + len(contents))
        self._next += len(contents)
        numbered = [(call, slot, contents[slot]) for slot, call in enumerate(calls)]
        wanted = [self._run(slices, bases) for slices in self._slices]
        for slices, run in zip(self._slices, wanted, strict=True):
            if run is not None:
                self._take(session, slices, run, bases, numbered[:made])
                if made is not None:
                    self._early += self._touched(session, slices, run, bases, numbered[made:])
        if whole:
            slot = self._random.randrange(len(contents))
            for slices in self._slices:
                everything = (0, slices.count(self._case))
                self._take(session, slices, everything, bases, [(calls[slot], slot, contents[slot])])

    def settle(self) -> None:
        """Compare what was read since the last time."""
        jobs = [job for sample in self._samples for job in self._jobs(sample)]
        for wrong in self._pool.map(lambda job: job(), jobs):
            self._wrong |= wrong
        for sample in self._samples:
            self._calls |= set(sample.calls)
        self._samples = []

    def _run(self, slices: Slices, bases: Bases) -> tuple[int, int] | None:
        """A run of slices for all calls of a sweep; now and then none, where one slice is much work."""
        count = slices.count(self._case)
        given = bases.inputs[0]
        read = sum(array.size for array in given.arrays.values() if array is not None) / count
        written = sum(math.prod(_shape(given, name)) for name in slices.outputs) / count
        length = min(count, SAMPLED_INPUTS / read, SAMPLED_OUTPUTS / (written * self._slots))
        if length < self._random.random():
            return None
        whole = max(1, int(length))
        return self._random.randrange(count - whole + 1), whole

    def _take(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> None:
        found = self._read(session, slices, run, bases, calls)
        numbers, contents = tuple(call for call, *_ in calls), tuple(content for *_, content in calls)
        self._samples.append(_Sample(slices, *run, bases, numbers, contents, found))

    def _touched(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> int:
        """How many of these calls, which were not made, have something else there than restoring left."""
        (first, length), touched = run, np.zeros(len(calls), np.bool_)
        for name, found in self._read(session, slices, run, bases, calls).items():
            for place, (*_, content) in enumerate(calls):
                given = bases.inputs[content.base].arrays.get(name)
                left = b"\xff" * found[place].nbytes
                if given is not None:
                    left = given.reshape(slices.count(self._case), -1)[first : first + length].tobytes()
                touched[place] |= found[place].tobytes() != left
        return int(touched.sum())

    def _read(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> dict[str, Array]:
        """Per output these slices of the contents, as they lie in the slots: [calls, slices, elements]."""
        (first, length), count = run, slices.count(self._case)
        found = {}
        for name in slices.outputs:
            size = math.prod(_shape(bases.inputs[0], name)) // count
            step = count // bases.turns if name in self._problem.turning else 0
            pieces = [
                Piece(slot, name, place * size, places * size)
                for _, slot, content in calls
                for place, places in _around((first + content.turn * step) % count, length, count)
            ]
            found[name] = session.read(pieces).reshape(len(calls), length, size)
        return found

    def _jobs(self, sample: _Sample) -> Iterator[Callable[[], set[int]]]:
        """The comparison of a sample in pieces that threads may share: the calls that are wrong."""
        order = sorted(range(len(sample.calls)), key=lambda place: sample.contents[place].base)
        count = sample.slices.count(self._case)
        for base, group in groupby(order, key=lambda place: sample.contents[place].base):
            places = list(group)
            given = sample.bases.inputs[base]
            read = sum(array.size for array in given.arrays.values() if array is not None) / count
            step = max(1, int(CHUNK / read))
            for start in range(0, sample.count, step):
                yield partial(self._compare, sample, given, places, start, min(start + step, sample.count))

    def _compare(self, sample: _Sample, given: Inputs, places: list[int], start: int, end: int) -> set[int]:
        index = np.arange(sample.first + start, sample.first + end)
        expected = self._problem.oracle(self._case, sample.slices.take(given, index))
        bad = np.zeros(len(places), np.bool_)
        for name in sample.slices.outputs:
            wrong = _wrong(name, expected[name], sample.found[name][places, start:end])
            bad |= wrong.reshape(len(places), -1).any(axis=1)
        return {sample.calls[place] for place, one in zip(places, bad, strict=True) if one}


def _wrong(name: str, expectation: Expectation, got: Array) -> Mask:
    """Which elements are wrong of an output of several calls, all of which must be the same."""
    first = expectation.candidates[0]
    shape = len(got), *first.expected.shape
    with np.errstate(invalid="ignore", over="ignore"):
        near: Mask = np.abs(got.reshape(shape) - first.expected) <= first.allowed
    if near.all():  # as it nearly always is: a tenth of the work of comparing with all that is right
        return ~near
    for_all = [
        Candidate(np.broadcast_to(one.expected, shape), np.broadcast_to(one.allowed, shape))
        for one in expectation.candidates
    ]
    return compare(name, Expectation(tuple(for_all), expectation.finite_only), got.reshape(shape)).wrong


def _whole(problem: KernelProblem) -> Slices:
    """All outputs as one slice, of problems that know no smaller ones."""
    outputs = tuple(array.name for array in problem.arrays if array.role is not Role.INPUT)
    return Slices(outputs, lambda _: 1, lambda given, _: given)


def _shape(given: Inputs, name: str) -> tuple[int, ...]:
    array = given.arrays.get(name)
    return given.outputs[name] if array is None else array.shape


def _around(place: int, length: int, count: int) -> Iterator[tuple[int, int]]:
    """``length`` of ``count`` places in a circle from ``place`` on, as stretches of a line."""
    before_end = min(length, count - place)
    yield place, before_end
    if before_end < length:
        yield 0, length - before_end
