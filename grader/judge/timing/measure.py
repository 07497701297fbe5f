"""Measures the speed of one problem on a GPU: drives timed sessions through the protocol of ``judge.timing``.

Who runs next, on which contents, and how long a batch is, comes from the system's randomness and is told to
the runner only when it is due. Bases come from the seed, so that a regrade meets the same ones. They are
drawn while the runner starts, and outputs are compared between the phases of a case, so that nothing else
keeps this machine busy while something is timed.
"""

from __future__ import annotations

import math
from concurrent.futures import wait
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice, repeat
from random import Random, SystemRandom
from statistics import median
from typing import TYPE_CHECKING

from grader.devices import calls, layout
from grader.devices.condition import doubts
from grader.devices.device import Call, LoadError, Memory, Status
from grader.devices.runner import RunnerError
from grader.devices.timed import NotCapturedError, Plan, Step
from grader.judge.correctness.calls import arguments
from grader.judge.timing import plausibility as trust
from grader.judge.timing import speed
from grader.judge.timing.statistics import BLOCKS, NOTHING, ORDERS, Block, CaseTimes
from grader.judge.timing.verification import Verifier, draw, threads, turns
from grader.problems.operations import Kind, temporaries
from grader.problems.problem import Role
from grader.records.errors import DeviceError
from grader.records.record import GpuCondition, PerformanceResult
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import ThreadPoolExecutor
    from pathlib import Path

    from grader.devices.condition import Condition
    from grader.devices.timed import Content, TimedSession
    from grader.judge.timing.verification import Bases
    from grader.problems.operations import Operation
    from grader.problems.problem import Case, Inputs, KernelProblem

CACHES = 5  # all slots together exceed the L2 this many times
MOST_SLOTS = 128  # more of them would cost more to restore than to run
HOST_SLOTS = 2  # what comes from host memory is in no cache of the device
MOST_HOST_BYTES = 16 << 20  # of a call by host pointers: the bus takes minutes for the baseline's larger ones
HEAT_SECONDS = 1.0  # before the first case of a process
WARM_SECONDS = 0.2  # before the others
ATTEMPTS = 3  # at a call that is not slow; the first may load its code
NOVEL_SWEEPS = 5  # at most: one of a hundred takes half as long again, with host pointers more of them
STOPS = 6  # sweeps that end before their last call; half of them behind the first
SLOW_SWEEP = 1.0  # seconds; a case takes some sixty sweeps of the submission
SLOW_SPEEDUP = 0.01  # where a sweep takes as long
FASTEST = 100.0  # times the baseline's speed; the reference has reached 55
BATCH_SECONDS = 0.5
BATCH_SWEEPS = 2, 24  # fewer where these take longer than that
PAIRS = {"submission": 9, "baseline": 6}  # of nine, the second smallest difference still bounds the median

_ENDED = {Status.CRASHED, Status.EXITED}
_ENDS = {
    Status.UNTRUSTED: Verdict.UNTRUSTED,
    Status.LOST: Verdict.INFRA_ERROR,
    Status.UNSUPPORTED: Verdict.INFRA_ERROR,
}


class _TooSlowError(Exception):
    """A submission that would take hours to measure, and could not reach its target."""


@dataclass(frozen=True)
class Measured:
    """The verdict with its record, and why it cannot be believed, if so."""

    performance: PerformanceResult
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timing:
    """What does not change between the processes of one measurement.

    Attributes:
        problem: what is timed.
        l2_bytes: size of the device's L2.
        open: starts a fresh runner with the submission, which may also load the baseline's libraries.
        baseline: the baseline's functions by library.
        seed: of the bases.
        seconds: that a call may take.
        progress: told what comes next; what it raises ends the measurement.
        look: the condition of the device, told when; None where it does not show.
        rival: what stands in for the unfused program of a case, for experiments with known truth.
    """

    problem: KernelProblem
    l2_bytes: int
    open: Callable[[], TimedSession]
    baseline: Mapping[Path, tuple[str, ...]]
    seed: int
    seconds: float
    progress: Callable[[str], None]
    look: Callable[[str], Condition | None]
    rival: Callable[[Call], Step] | None = None


def measure(timing: Timing, target: float, memory: Memory) -> Measured:
    """Time the entry point against the unfused baseline in fresh processes until two of them agree."""
    method = "host" if memory is Memory.HOST else "graph"
    processes: list[list[CaseTimes]] = []
    looks = [timing.look("before timing")]
    while speed.verdict(processes, target) is None:
        try:
            times, seen = _process(timing, len(processes), method, target)
            processes.append(times)
            looks.append(seen)
        except NotCapturedError:
            method = "events"
        except RunnerError as error:
            timing.progress(f"{timing.problem.id}: the runner ended")
            if method == "graph" and not processes and error.status in _ENDED:
                method = "events"  # code that ends its process where it may not allocate
                continue
            return _unmeasured(_ENDS.get(error.status, Verdict.FAIL), target, str(error))
        except _TooSlowError as error:
            return _unmeasured(Verdict.FAIL, target, str(error))
        except (DeviceError, LoadError) as error:
            return _unmeasured(Verdict.INFRA_ERROR, target, str(error))
    sizes = [timing.problem.minimal_bytes(case) for case in timed_cases(timing.problem, timing.seed, method)]
    result = speed.assessed(processes, target, sizes)
    untrusted = result.verdict is Verdict.UNTRUSTED
    reasons = dict.fromkeys(reason for process in processes for reason in speed.doubts(process))
    return Measured(_with_condition(result, looks), tuple(reasons) if untrusted else ())


def timed_cases(problem: KernelProblem, seed: int, method: str) -> list[Case]:
    """The timing cases that ``method`` measures: with host pointers those of the size of the course's."""
    cases = problem.timing_cases(seed)
    sizes = [problem.minimal_bytes(case) for case in cases]
    most = max(MOST_HOST_BYTES, min(sizes)) if method == "host" else math.inf
    return [case for case, size in zip(cases, sizes, strict=True) if size <= most]


def _with_condition(result: PerformanceResult, looks: Sequence[Condition | None]) -> PerformanceResult:
    """``result`` with what the device looked like, and with a word where that makes a verdict doubtful."""
    seen = [GpuCondition.model_validate(asdict(look)) for look in looks if look is not None]
    before, *during = looks
    found = doubts(before, [look for look in during if look is not None]) if before is not None else ()
    message = result.message
    if found and result.verdict is not Verdict.PASS:
        message = "; ".join(filter(None, (message, "doubtful: " + ", ".join(found))))
    return result.model_copy(update={"condition": seen, "message": message, "info": [*result.info, *found]})


def _unmeasured(verdict: Verdict, target: float, message: str) -> Measured:
    result = PerformanceResult(verdict=verdict, target=target, message=f"timing ended early: {message}")
    return Measured(result, (message,) if verdict is Verdict.UNTRUSTED else ())


def _process(
    timing: Timing, index: int, method: str, target: float
) -> tuple[list[CaseTimes], Condition | None]:
    """All timing cases in one fresh runner, and the condition of the device after the last one.

    A case in which the submission is too slow has to wait for the others: they may show that no time of its
    own could make it reach its target.

    Raises:
        _TooSlowError: they do.
    """
    problem = timing.problem
    cases = timed_cases(problem, timing.seed, method)
    found: dict[str, CaseTimes] = {}
    slow: dict[str, float] = {}
    with threads() as pool:
        coming = [
            pool.submit(
                _prepared, timing, case, method, Random(f"{timing.seed}/{problem.id}/{index}/{place}")
            )
            for place, case in enumerate(cases)
        ]
        with timing.open() as session:
            wait(coming)
            while coming:
                first = coming.pop(0)
                prepared = first.result()
                name = prepared.case.name
                timing.progress(f"{problem.id}: timing {name}, process {index + 1}")
                sweeps = _Sweeps(problem, session, prepared, pool)
                sweeps.heat(WARM_SECONDS if found else HEAT_SECONDS)
                if name not in slow and (speedup := sweeps.too_slow()) is not None:
                    slow[name] = speedup
                    _check_reachable(target, slow, len(cases))
                    coming.append(first)
                else:
                    found[name] = sweeps.times(BLOCKS[index])
            return [found[case.name] for case in cases], timing.look(f"at the end of process {index + 1}")


def _check_reachable(target: float, slow: Mapping[str, float], cases: int) -> None:
    """Check that a submission whose speedups in some of its cases are ``slow`` may reach its target.

    Raises:
        _TooSlowError: it would not with ``FASTEST`` in all others.
    """
    most = (math.prod(slow.values()) * FASTEST ** (cases - len(slow))) ** (1 / cases)
    if most < target:
        seen = ", ".join(f"{name} {speedup:.2g}x" for name, speedup in slow.items())
        raise _TooSlowError(f"too slow to go on ({seen}); does one thread, or one block, do all the work?")


@dataclass(frozen=True)
class _Prepared:
    """A case with its plan, the usual bases, and novel ones, of which the next are drawn already."""

    case: Case
    plan: Plan
    bases: Bases
    novel: Iterator[Bases]


def _prepared(timing: Timing, case: Case, method: str, source: Random) -> _Prepared:
    seeds = iter(lambda: source.getrandbits(48), None)
    first = timing.problem.inputs(replace(case, seed=next(seeds)))
    plan = _plan(timing, case, first, method)
    usual = draw(timing.problem, case, seeds, plan.slots)
    novel = (draw(timing.problem, case, seeds, plan.slots, novel=True) for _ in repeat(None))
    return _Prepared(case, plan, usual, chain([next(novel)], novel))


class _Sweeps:
    """One case in one process, on one set of bases after the other."""

    def __init__(
        self,
        problem: KernelProblem,
        session: TimedSession,
        prepared: _Prepared,
        pool: ThreadPoolExecutor,
    ) -> None:
        self._session, self._case, self._plan = session, prepared.case, prepared.plan
        self._random = SystemRandom()
        self._bases, self._novel_bases = prepared.bases, prepared.novel
        self._verifier = Verifier(problem, prepared.case, pool, self._plan.slots, self._random)
        session.prepare(self._plan, self._bases.arrays)

    def _contents(self) -> list[Content]:
        return self._bases.contents(self._plan.slots, self._random)

    def _sweep(self, arm: str, *, sampled: bool = False, whole: bool = False) -> float:
        """One sweep; what is verified of it is chosen only afterwards."""
        contents = self._contents()
        seconds = self._session.sweep(arm, contents)
        if sampled:
            self._verifier.sample(self._session, self._bases, contents, whole=whole)
        return seconds

    def _block(self, arms: Mapping[str, str], whole: int | None = None) -> Block:
        """Four sweeps; of the submission's number ``whole`` the outputs of one call are verified entirely."""
        order = self._random.choice(ORDERS)
        seconds, seen = [], 0
        for arm in order:
            submission = arms[arm] == "submission"
            seconds.append(self._sweep(arms[arm], sampled=submission, whole=submission and seen == whole))
            seen += submission
        one, two, three, four = seconds
        return Block(order, (one, two, three, four))

    def _stopped(self, most: int) -> tuple[int, float]:
        """A sweep that ends after a random number of calls, at most so many: calls and seconds.

        All inputs are there when a sweep begins. Were one call to work for all, the time of all, shared out,
        would be no call's time; but then it does so in this sweep, too.
        """
        contents = self._contents()
        calls = self._random.randint(1, most)
        seconds = self._session.sweep("submission", contents, calls)
        self._verifier.sample(self._session, self._bases, contents, made=calls)
        return calls, seconds

    def too_slow(self) -> float | None:
        """The speedup of the best of three calls, if sweeps of none of them can be measured in a while."""
        slots = self._plan.slots
        baseline = self._sweep("baseline")
        seen: list[float] = []
        while len(seen) < ATTEMPTS:
            sweep = slots * self._session.sweep("submission", self._contents(), 1)
            seen.append(baseline / sweep if sweep > SLOW_SWEEP else math.inf)
            if not seen[-1] < SLOW_SPEEDUP:
                return None
        return max(seen)

    def heat(self, seconds: float) -> None:
        """Run the baseline until clocks are up."""
        heated = 0.0
        while heated < seconds:
            heated += self._session.batch("baseline", [self._contents()])

    def _novel(self, bases: Bases, warm_up: float) -> float:
        """One sweep of the submission on the first contents of ``bases``: as many of them stay as there were.

        The oracle works for each base of a sweep, and a base for each slot is too much work for every sweep.
        """
        usual = len(self._bases.inputs)
        self._bases = bases
        self._session.renew(bases.arrays)
        self.heat(warm_up)
        self._sweep("baseline")  # clocks have sunk meanwhile
        seconds = self._sweep("submission", sampled=True)
        self._bases = replace(bases, inputs=bases.inputs[:usual])
        return seconds

    def _novel_sweeps(self, usual: float) -> tuple[float, ...]:
        """Sweeps on new contents until one takes as long as is ``usual``."""
        seconds: list[float] = []
        for bases in islice(self._novel_bases, NOVEL_SWEEPS):
            if seconds:
                self._verifier.settle()  # which lets go of the bases before
            # Were clocks that sank while bases were drawn the reason, one sweep would not raise them.
            seconds.append(self._novel(bases, WARM_SECONDS if seconds else 0))
            if not trust.remembers(seconds, usual):
                break
        return tuple(seconds)

    def times(self, blocks: int) -> CaseTimes:
        """Run the blocks, with new bases and with batches at random positions among them."""
        for arm in ("submission", NOTHING):
            self._sweep(arm)
        pairs: list[Block] = []
        same, stream = [], []
        batches: list[tuple[str, int, float]] = []
        novel: tuple[float, ...] = ()
        due = [(self._random.randrange(blocks), arm) for arm, count in PAIRS.items() for _ in range(count)]
        half = self._plan.slots // 2
        stops = [(self._random.randrange(blocks), 1 if one % 2 else half) for one in range(STOPS)]
        stopped: list[tuple[int, float]] = []
        first: list[float] = []
        renewal = self._random.randrange(blocks // 4, blocks)
        entirely = {self._random.randrange(renewal), self._random.randrange(renewal, blocks)}
        for index in range(blocks):
            if index == renewal:
                self._verifier.settle()
                novel = self._novel_sweeps(median(time for block in pairs for time in block.times("B")))
            whole = self._random.randrange(2) if index in entirely else None
            pairs.append(self._block({"A": "baseline", "B": "submission"}, whole))
            same.append(self._block({"A": "baseline", "B": "baseline"}))
            stream.append(self._sweep("stream"))
            for arm in [arm for place, arm in due if place == index]:
                batches += self._batches(arm, pairs[-1])
            for most in [most for place, most in stops if place == index]:
                first.append(self._session.sweep("stream", self._contents(), 1))
                stopped.append(self._stopped(most))
        self._verifier.settle()
        return CaseTimes(
            case=self._case.name,
            method=self._plan.method,
            slots=self._plan.slots,
            blocks=tuple(pairs),
            same=tuple(same),
            stream=tuple(stream),
            novel=novel,
            batches=tuple(batches),
            verified=self._verifier.verified,
            wrong=self._verifier.wrong,
            stopped=tuple(stopped),
            first=tuple(first),
            early=self._verifier.early,
        )

    def _batches(self, arm: str, block: Block) -> Iterator[tuple[str, int, float]]:
        """A batch of ``arm`` and an empty one as long, in random order and of random length.

        What the submission's last sweep left is verified, so that it has to work in all of them.
        """
        seconds = median(block.times("B" if arm == "submission" else "A"))
        least, most = BATCH_SWEEPS
        most = max(1, int(min(most, BATCH_SECONDS / seconds))) if 0 < seconds < math.inf else 1
        length = self._random.randint(min(least, most), most)
        for one in self._random.sample((arm, NOTHING), 2):
            contents = [self._contents() for _ in range(length)]
            yield one, length, self._session.batch(one, contents)
            if one == "submission":
                self._verifier.sample(self._session, self._bases, contents[-1])


def _plan(timing: Timing, case: Case, inputs: Inputs, method: str) -> Plan:
    problem = timing.problem
    memory = Memory.HOST if method == "host" else Memory.DEVICE
    call = Call(problem.entry_point, arguments(problem, case, inputs), timing.seconds, memory)
    arrays = calls.arrays(call)
    sizes = {array.name: layout.data_bytes(array) for array in arrays}
    parameters = [array for array in problem.arrays if array.name in sizes]
    written = frozenset(p.name for p in parameters if p.role is not Role.INPUT)
    read = sum(sizes[p.name] for p in parameters if p.role is not Role.OUTPUT)
    wrote = sum(sizes[name] for name in written)
    scale = problem.minimal_bytes(case) / (read + wrote)
    program = () if timing.rival else problem.unfused(case)
    extra = temporaries(program, list(sizes))
    places = {name: place for place, name in enumerate([*sizes, *extra])}
    return Plan(
        call=call,
        written=written,
        method=method,
        slots=HOST_SLOTS if method == "host" else slots(sum(sizes.values()), timing.l2_bytes),
        turns={name: turns(problem, inputs) for name in sizes if name in problem.turning},
        libraries=timing.baseline,
        steps=(timing.rival(call),)
        if timing.rival
        else tuple(step(operation, places) for operation in program),
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
