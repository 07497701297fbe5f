"""Verifies that timed calls did their work: gives them fresh contents, and checks their outputs afterwards.

A *base* is a newly drawn set of inputs. A *content* is a base whose arrays are rotated by some rows
(``KernelProblem.turning``). So a few bases give every call a different content for the price of a copy on the
device, and the oracle of a base gives the expected outputs of all its contents.

After each sweep of the submission, a range of slices is drawn, and the runner keeps it of every slot. Of one
call, or two, all outputs are kept; where the oracle would take too long for them, as many ranges as it can
work through. They are fetched and compared when nothing of the case is being timed.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from time import thread_time
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.timed import Content, Piece
from grader.judge.correctness.checkers import refused
from grader.judge.correctness.comparison import compare
from grader.problems.dtypes import DTYPES
from grader.problems.problem import Candidate, Expectation, Role, Slices
from grader.problems.threads import keep_to_one_thread, torch_threads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from random import SystemRandom

    from numpy.typing import NDArray

    from grader.devices.timed import TimedSession
    from grader.problems.problem import Case, Inputs, KernelProblem

    Array = NDArray[np.generic]
    Mask = NDArray[np.bool_]

CONTENTS = 8  # smallest number of different contents, unless there are fewer slots
SWEEP_SECONDS = 0.02  # of processor time that the oracle's thread may take per sweep
THOROUGH_SECONDS = 2.0  # that it may take for a call of which all outputs are read, or many
RANGE_SECONDS = 0.005  # that it takes for a range at least, because each range costs something of its own,
WORTH = 1.5  # and as long as one twice as long, if it fits into the caches, takes less than so many times
LEAST_SECONDS = 1e-4  # that are told apart, because some clocks are coarse
SAMPLED_OUTPUTS = 1 << 18  # elements per sweep that are read
MOST_THREADS = 16


def processors() -> int:
    """How many threads work for a process that has the machine to itself."""
    return min(MOST_THREADS, os.cpu_count() or 1)


class Threads(ThreadPoolExecutor):
    """The threads that draw inputs, run oracles and compare; NumPy releases the interpreter lock meanwhile.

    PyTorch may use only one thread in each of them, because it would otherwise start many more.

    Attributes:
        count: how many there are.
    """

    def __init__(self, count: int | None = None) -> None:
        """So many, or one for each processor."""
        self.count = count or processors()
        super().__init__(self.count, initializer=keep_to_one_thread)


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
        turns = np.frombuffer(random.randbytes(8 * slots), np.uint64) % np.uint64(self.turns)
        return [Content(order[slot % len(order)], turn) for slot, turn in enumerate(turns.tolist())]


def turns(problem: KernelProblem, inputs: Inputs) -> int:
    """The number of rows by which the arrays of ``inputs`` can be rotated; 1 if they cannot."""
    lengths = {
        array.shape[0]
        for name, array in inputs.arrays.items()
        if name in problem.turning and array is not None
    }
    return lengths.pop() if lengths else 1


def draw(
    problem: KernelProblem,
    case: Case,
    seeds: Iterator[int],
    slots: int,
    first: Inputs | None = None,
    *,
    novel: int = 0,
) -> Bases:
    """As many bases as ``slots`` contents need, drawn with the next of ``seeds`` unless ``first`` is one.

    With ``novel``, there are so many bases, one for each call. Rotation only moves rows, so a submission that
    memoised results by row, or a sum over all rows, would already know them from a base's first content.
    """
    if first is None:
        first = problem.inputs(replace(case, seed=next(seeds)))
    rotations = turns(problem, first)
    count = novel or -(-min(slots, CONTENTS) // rotations)
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
class Extent:
    """How much of some slices is judged at a time.

    Attributes:
        slices: which.
        length: how many of them the oracle gets.
        seconds: of processor time that it takes for them, in the thread that asks it.
        known: the inputs that were tried, and what is right for them, if these are all slices.
    """

    slices: Slices
    length: int
    seconds: float
    known: tuple[Inputs, Mapping[str, Expectation]] | None = None


def extents(problem: KernelProblem, case: Case, inputs: Inputs, share: int = 1) -> tuple[Extent, ...]:
    """For each kind of slices as many as the oracle takes ``RANGE_SECONDS`` for, tried with ``inputs``.

    For outputs that do not fall apart it gets ``share`` threads.
    """
    written = {array.name for array in problem.arrays}
    kinds = [
        replace(slices, outputs=tuple(name for name in slices.outputs if name in written))
        for slices in problem.slices or (_whole(problem),)
    ]
    return tuple(_extent(problem, case, inputs, slices, share) for slices in kinds)


def _extent(problem: KernelProblem, case: Case, inputs: Inputs, slices: Slices, share: int) -> Extent:
    count, length, before = slices.count(case), max(1, 2 * slices.halo(case)), math.inf
    while True:
        length = min(length, count)
        given, _ = slices.window(case, inputs, (count - length) // 2, length)
        start = thread_time()
        with torch_threads(share if count == 1 else 1):
            right = problem.oracle(case, given)
            expected = {name: right[name] for name in slices.outputs if name in right}
        seconds = thread_time() - start
        if length == count or seconds >= max(RANGE_SECONDS, WORTH * before):
            known = (inputs, expected) if length == count else None
            return Extent(slices, length, max(seconds, LEAST_SECONDS), known)
        length, before = 2 * length, seconds


@dataclass(frozen=True)
class _Sample:
    """The outputs of a sweep in ``count`` slices of the bases from slice ``first`` on.

    Attributes:
        extent: what the slices are, and how many are compared at a time.
        first: the first one.
        count: how many there are.
        bases: what the calls were made on.
        calls: numbers of the calls.
        contents: the content of each call.
        outputs: by name of the output, what each call wrote: [calls, count, elements].
    """

    extent: Extent
    first: int
    count: int
    bases: Bases
    calls: tuple[int, ...]
    contents: tuple[Content, ...]
    outputs: Mapping[str, Array]


class Verifier:
    """Takes samples of the outputs of one case's timed calls, and compares them when asked to."""

    def __init__(
        self,
        problem: KernelProblem,
        case: Case,
        judged: Sequence[Extent],
        pool: Threads,
        slots: int,
        random: SystemRandom,
    ) -> None:
        self._problem, self._case, self._pool = problem, case, pool
        self._slots, self._random = slots, random
        self._extents = judged
        self._kept: list[Callable[[Mapping[str, Array]], None]] = []
        self._samples: list[_Sample] = []
        self._compared: list[Future[set[int]]] = []
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
        """Keep some outputs of the last sweep of every slot, and with ``whole`` all or many of one slot.

        If the sweep ended after ``made`` calls, the remaining slots must hold what restoring left there.
        """
        calls = range(self._next, self._next + len(contents))
        self._next += len(contents)
        numbered = [(call, slot, contents[slot]) for slot, call in enumerate(calls)]
        used = len({content.base for content in contents})
        for extent in self._extents:
            afforded = extent.length * SWEEP_SECONDS / (used * extent.seconds)
            if run := self._run(extent.slices, bases, afforded):
                self._take(session, extent, run, bases, numbered[:made])
            if made is not None and (run := self._run(extent.slices, bases)):
                self._touched(session, extent.slices, run, bases, numbered[made:])
        if whole:
            slot = self._random.randrange(len(contents))
            for extent in self._extents:
                for run in self._runs(extent):
                    self._take(session, extent, run, bases, [numbered[slot]])

    def fetch(
        self,
        session: TimedSession,
        using: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """Get the outputs that were kept, with the GPU in the context ``using``."""
        kept, self._kept = self._kept, []
        for take, outputs in zip(kept, session.fetch(using), strict=True):
            take(outputs)

    def compare(self) -> None:
        """Begin to compare the outputs that were fetched since the last call of this method."""
        jobs = [job for sample in self._samples for job in self._jobs(sample)]
        share = max(1, self._pool.count // max(1, len(jobs)))

        def done(job: Callable[[], set[int]]) -> set[int]:
            with torch_threads(share):
                return job()

        self._compared += [self._pool.submit(done, job) for job in jobs]
        for sample in self._samples:
            self._calls |= set(sample.calls)
        self._samples = []

    def settle(self) -> None:
        """Compare the outputs that were fetched, and wait for that."""
        self.compare()
        for wrong in self._compared:
            self._wrong |= wrong.result()
        self._compared = []

    def _run(self, slices: Slices, bases: Bases, afforded: float = math.inf) -> tuple[int, int] | None:
        """First and number of slices to keep of each call of a sweep; sometimes None if they are large.

        Where less than one can be ``afforded``, that is the chance of reading one.
        """
        count = slices.count(self._case)
        written = sum(math.prod(_shape(bases.inputs[0], name)) for name in slices.outputs) / count
        length = min(count, afforded, SAMPLED_OUTPUTS / (written * self._slots))
        if length < self._random.random():
            return None
        whole = max(1, int(length))
        return self._random.randrange(count - whole + 1), whole

    def _runs(self, extent: Extent) -> list[tuple[int, int]]:
        """All slices, or as many ranges of them as the oracle can work through."""
        count = extent.slices.count(self._case)
        afforded = max(1, int(THOROUGH_SECONDS / extent.seconds))
        if count <= afforded * extent.length:
            return [(0, count)]
        return [(self._random.randrange(count - extent.length + 1), extent.length) for _ in range(afforded)]

    def _take(
        self,
        session: TimedSession,
        extent: Extent,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> None:
        numbers, contents = tuple(call for call, *_ in calls), tuple(content for *_, content in calls)

        def take(outputs: Mapping[str, Array]) -> None:
            self._samples.append(_Sample(extent, *run, bases, numbers, contents, outputs))

        self._keep(session, extent.slices, run, bases, calls, take)

    def _touched(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
    ) -> None:
        """Count those of these calls, which were not made, whose arrays differ from what restoring left."""
        first, length = run

        def take(outputs: Mapping[str, Array]) -> None:
            touched, before = np.zeros(len(calls), np.bool_), bases.arrays
            for name, output in outputs.items():
                for index, (*_, content) in enumerate(calls):
                    array = before[content.base].get(name)
                    restored = b"\xff" * output[index].nbytes
                    if array is not None:
                        rows = array.reshape(slices.count(self._case), -1)
                        restored = rows[first : first + length].tobytes()
                    touched[index] |= output[index].tobytes() != restored
            self._early += int(touched.sum())

        self._keep(session, slices, run, bases, calls, take)

    def _keep(
        self,
        session: TimedSession,
        slices: Slices,
        run: tuple[int, int],
        bases: Bases,
        calls: Sequence[tuple[int, int, Content]],
        take: Callable[[Mapping[str, Array]], None],
    ) -> None:
        """Let the runner keep these slices of each output in the slots of ``calls``.

        Once fetched, ``take`` gets them by name of the output: [calls, slices, elements].
        """
        (first, length), count = run, slices.count(self._case)
        pieces = []
        for name in slices.outputs:
            size = math.prod(_shape(bases.inputs[0], name)) // count
            step = count // bases.turns if name in self._problem.turning else 0
            pieces += [
                Piece(slot, name, start * size, number * size)
                for _, slot, content in calls
                for start, number in _around((first + content.turn * step) % count, length, count)
            ]
        session.keep(pieces)
        self._kept.append(
            lambda outputs: take(
                {name: output.reshape(len(calls), length, -1) for name, output in outputs.items()}
            )
        )

    def _jobs(self, sample: _Sample) -> Iterator[Callable[[], set[int]]]:
        """The comparison of a sample, split into jobs for threads; each job returns the wrong calls."""
        order = sorted(range(len(sample.calls)), key=lambda index: sample.contents[index].base)
        for base, group in groupby(order, key=lambda index: sample.contents[index].base):
            indices, inputs = list(group), sample.bases.inputs[base]
            for start in range(0, sample.count, sample.extent.length):
                end = min(start + sample.extent.length, sample.count)
                yield partial(self._compare, sample, inputs, indices, start, end)

    def _compare(self, sample: _Sample, inputs: Inputs, indices: list[int], start: int, end: int) -> set[int]:
        slices, known = sample.extent.slices, sample.extent.known
        if known is not None and inputs is known[0] and end - start == slices.count(self._case):
            expected, kept = known[1], slice(start, end)
        else:
            given, kept = slices.window(self._case, inputs, sample.first + start, end - start)
            expected = self._problem.oracle(self._case, given)
        bad = np.zeros(len(indices), np.bool_)
        for name in (output for output in slices.outputs if output in expected):
            right = expected[name].part(kept) if slices.halo(self._case) else expected[name]
            wrong = _wrong(name, right, sample.outputs[name][indices, start:end])
            bad |= wrong.reshape(len(indices), -1).any(axis=1)
        for number in np.flatnonzero(~bad) if self._problem.checker is not None else ():
            outputs = {
                name: sample.outputs[name][indices[number]].reshape(_shape(inputs, name))
                for name in slices.outputs
            }
            bad[number] = refused(self._problem, self._case, inputs, outputs, expected)[0] is not None
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
        for_all(expectation.candidates), expectation.finite_only, lambda: for_all(expectation.further())
    )
    return compare(name, right, got.reshape(shape)).wrong


def _whole(problem: KernelProblem) -> Slices:
    """All outputs as one slice, for problems that do not define smaller ones."""
    written = (array for array in problem.arrays if array.role is not Role.INPUT and not array.free)
    outputs = tuple(array.name for array in written)
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
