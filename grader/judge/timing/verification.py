"""Verifies that timed calls did their work: gives them fresh contents, and checks their outputs afterwards.

A *base* is a newly drawn set of inputs. A *content* is a base whose arrays are rotated by some rows
(``KernelProblem.turning``). So a few bases give every call a different content for the price of a copy on the
device, and the oracle of a base gives the expected outputs of all its contents.

After each sweep of the submission, a range of slices is drawn and read from every slot. Twice per case, all
outputs of one call are read. They are compared when nothing is being timed.
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
from grader.problems.dtypes import DTYPES
from grader.problems.problem import Candidate, Expectation, Role, Slices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from random import SystemRandom

    from numpy.typing import NDArray

    from grader.devices.timed import TimedSession
    from grader.problems.problem import Case, Inputs, KernelProblem

    Array = NDArray[np.generic]
    Mask = NDArray[np.bool_]

CONTENTS = 8  # smallest number of different contents, unless there are fewer slots
SAMPLED_INPUTS = 1 << 16  # elements per sweep that the oracle works through
SAMPLED_OUTPUTS = 1 << 18  # elements per sweep that are read and compared
CHUNK = 1 << 17  # elements that are compared at a time, so that the oracle's arrays stay in a core's cache
MOST_THREADS = 16


def threads() -> ThreadPoolExecutor:
    """The threads that draw inputs, run oracles and compare; NumPy releases the interpreter lock meanwhile.

    PyTorch may use only one thread in each of them, because it would otherwise start many more.
    """
    count = min(MOST_THREADS, os.cpu_count() or 1)
    return ThreadPoolExecutor(count, initializer=partial(torch.set_num_threads, 1))


@dataclass(frozen=True)
class Bases:
    """Fresh inputs of one case.

    Attributes:
        inputs: of each base.
        turns: the number of rows by which the turning arrays can be rotated.
        unwritten: of each base, what its outputs of integers hold before a call. It is random, as no integer
            is never right.
    """

    inputs: tuple[Inputs, ...]
    turns: int
    unwritten: tuple[Mapping[str, Array], ...]

    @property
    def arrays(self) -> list[dict[str, Array]]:
        """The arrays of each base, as far as they have a content before a call."""
        return [
            {name: array for name, array in inputs.arrays.items() if array is not None} | dict(unwritten)
            for inputs, unwritten in zip(self.inputs, self.unwritten, strict=True)
        ]

    def contents(self, slots: int, random: SystemRandom) -> list[Content]:
        """A content for each slot; all bases are used equally often, with a difference of one at most."""
        order = random.sample(range(len(self.inputs)), len(self.inputs))
        return [Content(order[slot % len(order)], random.randrange(self.turns)) for slot in range(slots)]


def turns(problem: KernelProblem, inputs: Inputs) -> int:
    """The number of rows by which the arrays of ``inputs`` can be rotated; 1 if they cannot."""
    lengths = {
        array.shape[0]
        for name, array in inputs.arrays.items()
        if name in problem.turning and array is not None
    }
    return lengths.pop() if lengths else 1


def draw(
    problem: KernelProblem, case: Case, seeds: Iterator[int], slots: int, *, novel: bool = False
) -> Bases:
    """As many bases as ``slots`` contents need, drawn with the next of ``seeds``.

    With ``novel``, each slot gets a separate base. Rotation only moves rows, so a submission that memoised
    results by row, or a sum over all rows, would already know them from the first content of a base.
    """
    first = problem.inputs(replace(case, seed=next(seeds)))
    rotations = turns(problem, first)
    count = slots if novel else -(-min(slots, CONTENTS) // rotations)
    inputs = (first, *(problem.inputs(replace(case, seed=next(seeds))) for _ in range(count - 1)))
    launcher = problem.launcher(case)
    return Bases(inputs, rotations, tuple(_unwritten(launcher, one, seeds) for one in inputs))


def _unwritten(problem: KernelProblem, inputs: Inputs, seeds: Iterator[int]) -> dict[str, Array]:
    """Random bits for the outputs of integers; a bool is neither 0 nor 1."""
    drawn = {}
    for array in problem.arrays:
        dtype = DTYPES[array.dtype]
        if array.role is Role.OUTPUT and dtype.exact:
            random = np.random.default_rng(next(seeds))
            size = math.prod(inputs.outputs[array.name]) * dtype.itemsize
            bits = random.integers(2 if dtype.name == "bool" else 0, 256, size, np.uint8)
            drawn[array.name] = bits.view(dtype.storage).reshape(inputs.outputs[array.name])
    return drawn


@dataclass(frozen=True)
class _Sample:
    """The outputs of a sweep in ``count`` slices of the bases from slice ``first`` on.

    Attributes:
        calls: numbers of the calls.
        contents: the content of each call.
        outputs: by name of the output, what each call wrote: [calls, count, elements].
    """

    slices: Slices
    first: int
    count: int
    bases: Bases
    calls: tuple[int, ...]
    contents: tuple[Content, ...]
    outputs: Mapping[str, Array]


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
        """The number of calls with at least one compared output."""
        return len(self._calls)

    @property
    def wrong(self) -> int:
        """The number of calls with at least one wrong output."""
        return len(self._wrong)

    @property
    def early(self) -> int:
        """The number of calls that were not made, but whose outputs were written."""
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
        """Read some outputs of the last sweep from every slot, and with ``whole`` all outputs of one slot.

        If the sweep ended after ``made`` calls, the remaining slots must hold what restoring left there.
        """
        calls = range(self._next, self._next + len(contents))
        self._next += len(contents)
        numbered = [(call, slot, contents[slot]) for slot, call in enumerate(calls)]
        runs = [self._run(slices, bases) for slices in self._slices]
        for slices, run in zip(self._slices, runs, strict=True):
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
        """Compare the outputs that were read since the last call of this method."""
        jobs = [job for sample in self._samples for job in self._jobs(sample)]
        for wrong in self._pool.map(lambda job: job(), jobs):
            self._wrong |= wrong
        for sample in self._samples:
            self._calls |= set(sample.calls)
        self._samples = []

    def _run(self, slices: Slices, bases: Bases) -> tuple[int, int] | None:
        """First and number of slices to read from each call of a sweep; sometimes None if they are large."""
        count = slices.count(self._case)
        inputs = bases.inputs[0]
        read = sum(array.size for array in inputs.arrays.values() if array is not None) / count
        written = sum(math.prod(_shape(inputs, name)) for name in slices.outputs) / count
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
        outputs = self._read(session, slices, run, bases, calls)
        numbers, contents = tuple(call for call, *_ in calls), tuple(content for *_, content in calls)
        self._samples.append(_Sample(slices, *run, bases, numbers, contents, outputs))

    def _touched(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> int:
        """The number of these calls, which were not made, whose arrays differ from what restoring left."""
        (first, length), touched = run, np.zeros(len(calls), np.bool_)
        before = bases.arrays
        for name, output in self._read(session, slices, run, bases, calls).items():
            for index, (*_, content) in enumerate(calls):
                array = before[content.base].get(name)
                restored = b"\xff" * output[index].nbytes
                if array is not None:
                    restored = array.reshape(slices.count(self._case), -1)[first : first + length].tobytes()
                touched[index] |= output[index].tobytes() != restored
        return int(touched.sum())

    def _read(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> dict[str, Array]:
        """These slices of each output, read from the slots of ``calls``: [calls, slices, elements]."""
        (first, length), count = run, slices.count(self._case)
        outputs = {}
        for name in slices.outputs:
            size = math.prod(_shape(bases.inputs[0], name)) // count
            step = count // bases.turns if name in self._problem.turning else 0
            pieces = [
                Piece(slot, name, start * size, number * size)
                for _, slot, content in calls
                for start, number in _around((first + content.turn * step) % count, length, count)
            ]
            outputs[name] = session.read(pieces).reshape(len(calls), length, size)
        return outputs

    def _jobs(self, sample: _Sample) -> Iterator[Callable[[], set[int]]]:
        """The comparison of a sample, split into jobs for threads; each job returns the wrong calls."""
        order = sorted(range(len(sample.calls)), key=lambda index: sample.contents[index].base)
        count = sample.slices.count(self._case)
        for base, group in groupby(order, key=lambda index: sample.contents[index].base):
            indices = list(group)
            inputs = sample.bases.inputs[base]
            read = sum(array.size for array in inputs.arrays.values() if array is not None) / count
            step = max(1, int(CHUNK / read))
            for start in range(0, sample.count, step):
                yield partial(self._compare, sample, inputs, indices, start, min(start + step, sample.count))

    def _compare(self, sample: _Sample, inputs: Inputs, indices: list[int], start: int, end: int) -> set[int]:
        chosen = np.arange(sample.first + start, sample.first + end)
        expected = self._problem.oracle(self._case, sample.slices.take(inputs, chosen))
        bad = np.zeros(len(indices), np.bool_)
        for name in sample.slices.outputs:
            wrong = _wrong(name, expected[name], sample.outputs[name][indices, start:end])
            bad |= wrong.reshape(len(indices), -1).any(axis=1)
        return {sample.calls[index] for index, is_bad in zip(indices, bad, strict=True) if is_bad}


def _wrong(name: str, expectation: Expectation, got: Array) -> Mask:
    """A mask of the wrong elements of one output in several calls, which all have the same expectation."""
    first = expectation.candidates[0]
    shape = len(got), *first.expected.shape
    near: Mask
    if first.expected.dtype.kind in "iu":
        near = np.asarray(got.reshape(shape) == first.expected)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            near = np.abs(got.reshape(shape).astype(np.float64) - first.expected) <= first.allowed
    if near.all():  # usually true, and ten times cheaper than a full comparison
        return ~near

    def for_all(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        return tuple(
            Candidate(np.broadcast_to(one.expected, shape), np.broadcast_to(one.allowed, shape))
            for one in candidates
        )

    right = Expectation(
        for_all(expectation.candidates), expectation.finite_only, lambda: for_all(expectation.others())
    )
    return compare(name, right, got.reshape(shape)).wrong


def _whole(problem: KernelProblem) -> Slices:
    """All outputs as one slice, for problems that do not define smaller ones."""
    outputs = tuple(array.name for array in problem.arrays if array.role is not Role.INPUT)
    return Slices(outputs, lambda _: 1, lambda inputs, _: inputs)


def _shape(inputs: Inputs, name: str) -> tuple[int, ...]:
    array = inputs.arrays.get(name)
    return inputs.outputs[name] if array is None else array.shape


def _around(start: int, length: int, count: int) -> Iterator[tuple[int, int]]:
    """Split ``length`` of ``count`` slices in a circle, from ``start`` on, into ranges (first, number)."""
    before_end = min(length, count - start)
    yield start, before_end
    if before_end < length:
        yield 0, length - before_end
