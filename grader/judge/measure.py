"""Measures the speed of one problem on a GPU: drives timed sessions through the protocol of ``judge.timing``.

Who runs next, on which contents, and how long a batch is, comes from the system's randomness and is told to
the runner only when it is due. Contents come from the seed, so that a regrade meets the same ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random, SystemRandom
from statistics import fmean, median
from typing import TYPE_CHECKING, Protocol

from grader.baseline.operations import Kind, temporaries
from grader.devices import calls, layout
from grader.devices.device import Call, DeviceError, LoadError, Memory, Status
from grader.devices.runner import RunnerError
from grader.devices.timed import NotCapturedError, Plan, Step
from grader.judge import trust
from grader.judge.comparison import compare
from grader.judge.correctness import arguments
from grader.judge.timing import (
    BLOCKS,
    ORDERS,
    Block,
    CaseTimes,
    combined,
    conclude,
    decide,
    interval,
    verdict_of_process,
)
from grader.problems.problem import ArrayParameter, Role
from grader.results import PerformanceResult, TimedCase
from grader.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from grader.baseline.operations import Operation
    from grader.devices.timed import TimedSession
    from grader.problems.problem import Case, Expectation, Inputs, Problem

CACHES = 5  # all slots together exceed the L2 this many times
MOST_SLOTS = 128  # more of them would cost more to restore than to run
HEAT_SECONDS = 1.0
VERIFIED_ELEMENTS = 1 << 26  # per case and process; comparing takes longer than measuring
FEWEST_VERIFIED, MOST_VERIFIED = 4, 64
BATCH_SECONDS = 0.5
BATCHES = 3  # of each length

_ENDS = {
    Status.UNTRUSTED: Verdict.UNTRUSTED,
    Status.LOST: Verdict.INFRA_ERROR,
    Status.UNSUPPORTED: Verdict.INFRA_ERROR,
}


class TimedDevice(Protocol):
    """A device with a clock."""

    l2_bytes: int

    def open_timed(
        self, library: Path, entry_points: tuple[str, ...], baseline: Sequence[Path]
    ) -> TimedSession:
        """Start a fresh runner that may also load the ``baseline`` libraries."""


@dataclass(frozen=True)
class Measured:
    """The verdict with its record, and why it cannot be believed, if so."""

    performance: PerformanceResult
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timing:
    """What does not change between the processes of one measurement."""

    problem: Problem
    library: Path
    device: TimedDevice
    baseline: Mapping[Path, tuple[str, ...]]
    seed: int
    seconds: float
    progress: Callable[[str], None]


def measure(timing: Timing, target: float, memory: Memory) -> Measured:
    """Time the entry point against the unfused baseline in fresh processes until two of them agree."""
    method = "host" if memory is Memory.HOST else "graph"
    processes: list[list[CaseTimes]] = []
    verdicts: list[Verdict] = []
    doubts: list[tuple[str, ...]] = []
    conclusion: Verdict | None = None
    while conclusion is None:
        try:
            times = _process(timing, len(verdicts), method)
        except NotCapturedError:
            method = "events"
            continue
        except RunnerError as error:
            if method == "graph" and not processes:
                method = "events"  # code that ends its process where it may not allocate
                continue
            return _unmeasured(_ENDS.get(error.status, Verdict.FAIL), target, str(error))
        except (DeviceError, LoadError) as error:
            return _unmeasured(Verdict.INFRA_ERROR, target, str(error))
        reasons = tuple(reason for case in times for reason in trust.reasons(case))
        processes.append(times)
        doubts.append(reasons)
        verdicts.append(Verdict.UNTRUSTED if reasons else verdict_of_process(times, target))
        conclusion = conclude(verdicts)
    sizes = [timing.problem.minimal_bytes(case) for case in timing.problem.timing_cases(timing.seed)]
    return _measured(conclusion, target, processes, doubts, sizes)


def _process(timing: Timing, index: int, method: str) -> list[CaseTimes]:
    """All timing cases in one fresh runner."""
    problem = timing.problem
    with timing.device.open_timed(timing.library, (problem.entry_point,), list(timing.baseline)) as session:
        found = []
        for place, case in enumerate(problem.timing_cases(timing.seed)):
            timing.progress(f"{problem.id}: timing {case.name}, process {index + 1}")
            source = Random(f"{timing.seed}/{problem.id}/{index}/{place}")
            found.append(_Sweeps(timing, session, case, source, method).times(BLOCKS[index]))
    return found


class _Contents:
    """Inputs of as many cases as there are slots, with their oracles made when they are needed."""

    def __init__(self, problem: Problem, case: Case, source: Random, count: int) -> None:
        self._problem = problem
        self._cases = [replace(case, seed=source.getrandbits(48)) for _ in range(count)]
        self.inputs = [problem.inputs(case) for case in self._cases]
        self._expected: dict[int, Mapping[str, Expectation]] = {}

    def arrays(self) -> list[dict[str, NDArray[np.generic]]]:
        """The arrays of each content."""
        return [
            {name: array for name, array in inputs.arrays.items() if array is not None}
            for inputs in self.inputs
        ]

    def right(self, index: int, outputs: Mapping[str, NDArray[np.generic]]) -> bool:
        """Whether every output is what content ``index`` asks for."""
        if index not in self._expected:
            self._expected[index] = self._problem.oracle(self._cases[index], self.inputs[index])
        expected = self._expected[index]
        return all(compare(name, expected[name], outputs[name]).right for name in expected)


class _Sweeps:
    """One case in one process."""

    def __init__(
        self, timing: Timing, session: TimedSession, case: Case, source: Random, method: str
    ) -> None:
        self._problem, self._session, self._case = timing.problem, session, case
        self._source, self._method = source, method
        self._random = SystemRandom()
        one = timing.problem.inputs(case)
        plan = _plan(timing, case, one, method)
        self._slots = plan.slots
        written = [array for array in calls.arrays(plan.call) if array.name in plan.written]
        elements = sum(math.prod(array.shape) for array in written)
        self._verifications = min(MOST_VERIFIED, max(FEWEST_VERIFIED, VERIFIED_ELEMENTS // elements))
        self._contents = self._fresh()
        self._verified = self._wrong = 0
        session.prepare(plan, self._contents.arrays())

    def _fresh(self) -> _Contents:
        return _Contents(self._problem, self._case, self._source, self._slots)

    def _assignment(self) -> list[int]:
        return self._random.sample(range(self._slots), self._slots)

    def _sweep(self, arm: str, share: float = 0.0) -> float:
        """One sweep; afterwards a share of its calls, drawn only now, is verified."""
        assignment = self._assignment()
        seconds = self._session.sweep(arm, assignment)
        chosen = [slot for slot in range(self._slots) if self._random.random() < share]
        for slot in chosen:
            (outputs,) = self._session.read([slot])
            self._verified += 1
            self._wrong += not self._contents.right(assignment[slot], outputs)
        return seconds

    def _block(self, arms: Mapping[str, str], share: float) -> Block:
        order = self._random.choice(ORDERS)
        one, two, three, four = (
            self._sweep(arms[arm], share if arms[arm] == "submission" else 0.0) for arm in order
        )
        return Block(order, (one, two, three, four))

    def times(self, blocks: int) -> CaseTimes:
        """Heat up, run the blocks with new contents at a place that nobody knows, and batches at the end."""
        heated = 0.0
        while heated < HEAT_SECONDS:
            heated += self._session.batch("baseline", [self._assignment()])
        for arm in ("submission", "nothing"):
            self._sweep(arm)
        share = min(1.0, self._verifications / (2 * blocks * self._slots))
        pairs, same, stream, novel = [], [], [], math.nan
        renewal = self._random.randrange(blocks // 4, blocks)
        for index in range(blocks):
            if index == renewal:
                self._contents = self._fresh()
                self._session.renew(self._contents.arrays())
                self._sweep("baseline")  # clocks have sunk while contents were made
                novel = self._sweep("submission", share)
            pairs.append(self._block({"A": "baseline", "B": "submission"}, share))
            same.append(self._block({"A": "baseline", "B": "baseline"}, 0.0))
            stream.append(self._sweep("stream"))
        return CaseTimes(
            case=self._case.name,
            method=self._method,
            slots=self._slots,
            blocks=tuple(pairs),
            same=tuple(same),
            stream=tuple(stream),
            novel=novel,
            batches=tuple(self._batches(median(pairs[0].seconds))),
            verified=self._verified,
            wrong=self._wrong,
        )

    def _batches(self, seconds: float) -> list[tuple[str, int, float]]:
        short = self._random.randint(2, 4)
        long = short + max(4, min(self._random.randint(12, 24), int(BATCH_SECONDS / max(seconds, 1e-9))))
        plan = [(arm, length) for arm in ("submission", "nothing") for length in (short, long)] * BATCHES
        self._random.shuffle(plan)
        return [
            (arm, length, self._session.batch(arm, [self._assignment() for _ in range(length)]))
            for arm, length in plan
        ]


def _plan(timing: Timing, case: Case, inputs: Inputs, method: str) -> Plan:
    problem = timing.problem
    memory = Memory.HOST if method == "host" else Memory.DEVICE
    call = Call(problem.entry_point, arguments(problem, case, inputs), timing.seconds, memory)
    arrays = calls.arrays(call)
    sizes = {array.name: layout.data_bytes(array) for array in arrays}
    parameters = [p for p in problem.parameters if isinstance(p, ArrayParameter) and p.name in sizes]
    written = frozenset(p.name for p in parameters if p.role is not Role.INPUT)
    read = sum(sizes[p.name] for p in parameters if p.role is not Role.OUTPUT)
    wrote = sum(sizes[name] for name in written)
    scale = problem.minimal_bytes(case) / (read + wrote)
    program = problem.unfused(case)
    extra = temporaries(program, list(sizes))
    places = {name: place for place, name in enumerate([*sizes, *extra])}
    return Plan(
        call=call,
        written=written,
        method=method,
        slots=slots(sum(sizes.values()), timing.device.l2_bytes),
        libraries=timing.baseline,
        steps=tuple(step(operation, places) for operation in program),
        scratch=tuple(4 * elements for elements in extra.values()),
        reads=_multiple(read * scale),
        writes=_multiple(wrote * scale),
    )


def slots(set_bytes: int, l2_bytes: int) -> int:
    """How many sets of arrays make every call meet a cold cache."""
    return min(MOST_SLOTS, max(2, -(-CACHES * l2_bytes // set_bytes)))


def step(operation: Operation, places: Mapping[str, int]) -> Step:
    """``operation`` as a call of ``generic.cu``."""
    out = operation.output

    def operand(index: int) -> list[tuple[str, object]]:
        tensor = operation.inputs[index]
        return [("array", places[tensor.name]), ("ints", tensor.strides)]

    head: list[tuple[str, object]] = [
        ("int", operation.code),
        ("int", len(out.shape)),
        ("ints", out.shape),
        ("array", places[out.name]),
        ("ints", out.strides),
    ]
    stream = ("stream", 0)
    if operation.kind is Kind.MAP:
        rest = [*operand(0), ("float", operation.constant), stream]
    elif operation.kind is Kind.ZIP:
        rest = [*operand(0), *operand(1), stream]
    else:
        length = operation.inputs[0].shape[operation.axis]
        rest = [*operand(0), ("int", operation.axis), ("int", length), stream]
    return Step(f"baseline_{operation.kind}", (*head, *rest))


def _multiple(size: float) -> int:
    return max(16, round(size / 16) * 16)


def _unmeasured(verdict: Verdict, target: float, message: str) -> Measured:
    result = PerformanceResult(verdict=verdict, target=target, message=f"timing ended early: {message}")
    return Measured(result, (message,) if verdict is Verdict.UNTRUSTED else ())


def _measured(
    verdict: Verdict,
    target: float,
    processes: Sequence[Sequence[CaseTimes]],
    doubts: Sequence[tuple[str, ...]],
    sizes: Sequence[int],
) -> Measured:
    """The record of all processes; speedup and interval from the blocks of all of them together."""
    trusted = [times for times, doubt in zip(processes, doubts, strict=True) if not doubt]
    reasons = tuple(dict.fromkeys(reason for doubt in doubts for reason in doubt))
    cases = [
        _timed_case([times[place] for times in processes], target, size, trusted=bool(trusted))
        for place, size in enumerate(sizes)
    ]
    if verdict is Verdict.UNTRUSTED or not trusted:
        message = "; ".join(reasons)
        return Measured(
            PerformanceResult(verdict=verdict, target=target, message=message, cases=cases), reasons
        )
    pooled = [_pooled([times[place] for times in trusted]) for place in range(len(trusted[0]))]
    whole, _ = combined(pooled)
    result = PerformanceResult(
        verdict=verdict,
        target=target,
        speedup=math.exp(whole.estimate),
        interval=(math.exp(whole.low), math.exp(whole.high)),
        bandwidth_fraction=math.exp(fmean(math.log(case.bandwidth_fraction) for case in pooled)),
        cases=cases,
    )
    return Measured(result)


def _pooled(times: Sequence[CaseTimes]) -> CaseTimes:
    """Several processes' times of one case as one."""
    return replace(
        times[0],
        blocks=tuple(block for one in times for block in one.blocks),
        same=tuple(block for one in times for block in one.same),
        stream=tuple(seconds for one in times for seconds in one.stream),
    )


def _timed_case(times: Sequence[CaseTimes], target: float, minimal_bytes: int, *, trusted: bool) -> TimedCase:
    samples = {
        f"process {number}: {name}": values
        for number, one in enumerate(times, 1)
        for name, values in to_samples(one).items()
    }
    if not trusted:
        name, method = times[0].case, times[0].method
        return TimedCase(name=name, verdict=Verdict.UNTRUSTED, method=method, samples=samples)
    case = _pooled(times)
    own, size = interval(case.values), case.floor.size
    return TimedCase(
        name=case.case,
        verdict=decide(own, size, target),
        speedup=math.exp(own.estimate),
        interval=(math.exp(own.low), math.exp(own.high)),
        baseline_us=median(case.times("A")) / case.slots * 1e6,
        yours_us=median(case.times("B")) / case.slots * 1e6,
        bandwidth_fraction=case.bandwidth_fraction,
        minimal_bytes=minimal_bytes,
        floor=size,
        method=case.method,
        samples=samples,
    )


def to_samples(times: CaseTimes) -> dict[str, list[float]]:
    """The raw times as the record keeps them, in seconds; an order is 0 for ABBA and 1 for BAAB."""
    arms = ("submission", "nothing")
    return {
        "slots": [times.slots],
        "order": [ORDERS.index(block.order) for block in times.blocks],
        "blocks": [seconds for block in times.blocks for seconds in block.seconds],
        "same order": [ORDERS.index(block.order) for block in times.same],
        "same": [seconds for block in times.same for seconds in block.seconds],
        "stream": list(times.stream),
        "novel": [times.novel],
        "batch arm": [arms.index(arm) for arm, _, _ in times.batches],
        "batch length": [length for _, length, _ in times.batches],
        "batch": [seconds for *_, seconds in times.batches],
        "verified, wrong": [times.verified, times.wrong],
    }
