"""Measures the speed of one problem on a GPU: drives timed sessions through the protocol of ``judge.timing``.

The system's random numbers decide which arm runs next, on which contents, and how long a batch is. The runner
learns each of these only when it is due. The bases come from the seed, so that a regrade uses the same ones.
They are drawn while the runners start, of which the second one is opened together with the first. A process
has the GPU alone for what it times of a case. Others share it while the case is prepared before that, and
while the outputs that were kept are fetched afterwards, which are compared while the next case is timed.

A process measures six blocks of each case, with everything that its times are checked by, and ends if its
verdict is clear. If it is not, it goes through the cases again for more blocks.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice, repeat
from random import Random, SystemRandom
from statistics import median
from typing import TYPE_CHECKING

from grader.devices import calls, layout
from grader.devices.condition import doubts
from grader.devices.device import Call, LoadError, Memory, Status
from grader.devices.runner import RunnerError
from grader.devices.timed import Content, NotCapturedError, Plan
from grader.judge.correctness.calls import arguments
from grader.judge.timing import plausibility as trust
from grader.judge.timing import speed
from grader.judge.timing.program import arithmetic, step
from grader.judge.timing.statistics import (
    BLOCKS,
    LOOKS,
    NOTHING,
    Block,
    CaseTimes,
    clear,
    combined,
)
from grader.judge.timing.verification import Bases, Threads, Verifier, draw, extents, turns
from grader.problems.operations import temporaries
from grader.problems.problem import Role
from grader.records.errors import MachineError
from grader.records.record import GpuCondition, KernelMeasure, PerformanceResult
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager
    from pathlib import Path

    from grader.devices.condition import Condition
    from grader.devices.timed import Step, TimedSession
    from grader.judge.timing.statistics import Goal
    from grader.judge.timing.verification import Extent
    from grader.problems.problem import Case, Inputs, KernelProblem

CACHES = 5  # all slots together exceed the L2 this many times
MOST_SLOTS = 128  # restoring more slots would take longer than running on them
HOST_SLOTS = 2  # data from host memory is in no cache of the device
MOST_HOST_BYTES = 16 << 20  # per call with host pointers: the baseline's larger calls take minutes on the bus
HEAT_SECONDS = 1.0  # longest warm-up before the first case of a process
WARM_SECONDS = 0.2  # longest warm-up before each other case
HEAT_BATCH_SECONDS = 0.015  # of a warm-up, of which two that take equally long show that it is done
BASELINE_SECONDS = 2e-3  # of a sweep of the baseline: what a first call takes longer is 0.3 % of it,
BASELINE_SHARE = 2.0  # and it is so many times as long as the submission's, or goes through all slots
ATTEMPTS = 3  # tries to see a call that is not slow; the first call may load its code
NOVEL_BYTES = 32 << 20  # arrays of calls on new contents, which are sent while others wait for the GPU
NOVEL_SWEEPS = 5  # at most: one honest sweep in a hundred takes 1.5 times as long, with host pointers more
DRAWN = 200  # contents of sweeps, before the GPU is taken: as many as most cases need
STOPS = 6  # sweeps that end before their last call; half of them end after the first
SLOW_SWEEP = 1.0  # seconds; a case takes about sixty sweeps of the submission
SLOW_SPEEDUP = 0.01  # a speedup below this is too slow where a sweep takes longer than that
FASTEST = 100.0  # assumed upper bound of the speedup in a case; the reference has reached 55
MOST_SWEEPS = 24  # of a batch
LONG_BATCH_SECONDS = 0.5  # of the longest batch, and
SHORT_BATCH_SECONDS = 1e-3  # of the shortest; a round trip, which both clocks do not share, varies by less
AGREEING = 2  # processes that have to
PAIRS = {"submission": 9, "baseline": 6}  # of nine, the second smallest difference still bounds the median

NOT_CAPTURED = "the call cannot be captured as a CUDA graph: {}"
_ENDED = {Status.CRASHED, Status.EXITED}
ENDS = {
    Status.UNTRUSTED: Verdict.UNTRUSTED,
    Status.LOST: Verdict.INFRA_ERROR,
    Status.UNSUPPORTED: Verdict.INFRA_ERROR,
}


@dataclass(frozen=True)
class Effort:
    """How much a process measures.

    Attributes:
        looks: for each process, the numbers of blocks after which it may end.
        sequential: whether it ends as soon as its verdict is clear.
        settled: by how much two batches of a warm-up that ends may differ, relative to their time.
        batch_sweeps: fewest and most sweeps of a batch, given the seconds of a sweep.
        whole: calls of each case all of whose outputs are compared.
        novel_bytes: of the arrays of calls on new contents.
        baseline_seconds: after which a sweep of a baseline that is much slower than the submission may end.
        at_once: how many processes are measured side by side.
    """

    looks: tuple[tuple[int, ...], ...]
    sequential: bool
    settled: float
    batch_sweeps: Callable[[float], tuple[int, int]]
    whole: int
    novel_bytes: float
    baseline_seconds: float
    at_once: int


def short_batch(sweep: float) -> tuple[int, int]:
    """As many sweeps as suffice for the judge's clock, and twice as many."""
    fewest = min(MOST_SWEEPS, max(1, math.ceil(SHORT_BATCH_SECONDS / sweep)))
    return fewest, min(MOST_SWEEPS, 2 * fewest)


def long_batch(sweep: float) -> tuple[int, int]:
    """Two sweeps and as many as there is time for."""
    most = max(1, int(min(MOST_SWEEPS, LONG_BATCH_SECONDS / sweep)))
    return min(2, most), most


UNTIL_CLEAR = Effort(
    looks=tuple(tuple(look for look in LOOKS if look <= most) for most in BLOCKS),
    sequential=True,
    settled=0.01,
    batch_sweeps=short_batch,
    whole=1,
    novel_bytes=NOVEL_BYTES,
    baseline_seconds=BASELINE_SECONDS,
    at_once=AGREEING,
)
"""For a verdict."""
PRECISE = Effort(
    looks=tuple((blocks,) for blocks in BLOCKS),
    sequential=False,
    settled=0.0,
    batch_sweeps=long_batch,
    whole=2,
    novel_bytes=math.inf,
    baseline_seconds=math.inf,
    at_once=1,
)
"""For a speedup to compare with others'."""


class _TooSlowError(Exception):
    """A submission that would take hours to measure, and could not reach its target."""


@dataclass(frozen=True)
class Measured:
    """The record with its verdict, and the reasons why the times are not trusted, if there are any."""

    performance: PerformanceResult
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Timing:
    """What does not change between the processes of one measurement.

    Attributes:
        problem: the problem that is timed.
        l2_bytes: size of the device's L2.
        open: starts a fresh runner with the submission, which may also load the baseline's libraries.
        baseline: the baseline's functions by library.
        seed: seed of the bases.
        seconds: time-out of a call.
        progress: called with a text on what comes next; an exception that it raises ends the measurement.
        look: returns the condition of the device, given a name for the moment; None where it is unknown.
        rival: replaces the unfused program of a case, for experiments with a known speedup.
        measure: what the submission is compared with: the unfused program, a streaming kernel, or the
            program's multiplications and additions alone.
        captured: whether calls that cannot be captured as a graph are not timed at all.
        alone: makes a context in which nobody else uses the GPU.
        shared: makes a context in which others may use it, but nobody has it alone.
        effort: how much is measured.
        threads: how many draw inputs and compare outputs; None for one on each processor.
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
    measure: KernelMeasure = "speedup"
    captured: bool = False
    alone: Callable[[], AbstractContextManager[object]] = nullcontext
    shared: Callable[[], AbstractContextManager[object]] = nullcontext
    effort: Effort = UNTIL_CLEAR
    threads: int | None = None


@dataclass(frozen=True)
class _Process:
    """What one process measured; the outputs of its calls are being compared.

    Attributes:
        sweeps: of each case.
        look: at the condition of the device when it had ended.
    """

    sweeps: tuple[_Sweeps, ...]
    look: Future[Condition | None]

    def times(self) -> list[CaseTimes]:
        """Of each case, once all outputs are compared."""
        return [sweeps.verified() for sweeps in self.sweeps]


class _Runners:
    """Fresh runners, of which those that are certainly needed are opened together."""

    def __init__(self, timing: Timing, pool: Threads) -> None:
        self._timing, self._pool = timing, pool
        self._opening = [pool.submit(timing.open) for _ in range(AGREEING)]

    def next(self) -> TimedSession:
        """A runner in which nothing was called yet.

        Raises:
            RunnerError: the runner ended while loading.
        """
        opening = self._opening.pop(0) if self._opening else self._pool.submit(self._timing.open)
        return opening.result()

    def close(self) -> None:
        """End those that nobody needed."""
        for opening in self._opening:
            if not opening.cancel() and opening.exception() is None:
                opening.result().close()


def measure(timing: Timing, goal: Goal, memory: Memory) -> Measured:
    """Time the entry point against its baseline in fresh processes until two of them agree."""
    before = timing.look("before timing")
    with Threads(timing.threads) as pool, closing(_Runners(timing, pool)) as runners:
        return _measured(timing, goal, "host" if memory is Memory.HOST else "graph", pool, runners, before)


def _measured(
    timing: Timing,
    goal: Goal,
    method: str,
    pool: Threads,
    runners: _Runners,
    before: Condition | None,
) -> Measured:
    target = goal.target
    begun: list[_Process] = []
    processes: list[list[CaseTimes]] = []
    contents = _Contents(timing, method, pool)
    while len(begun) < AGREEING or speed.verdict(processes, target) is None:
        try:
            begun += _processes(timing, len(begun), contents, goal, pool, runners)
            if len(begun) >= AGREEING:  # the outputs of the first are compared while the second one is timed
                processes += [process.times() for process in begun[len(processes) :]]
        except NotCapturedError as error:
            if timing.captured:
                return unmeasured(Verdict.FAIL, target, NOT_CAPTURED.format(error))
            method = "events"
            contents = _Contents(timing, method, pool)
        except RunnerError as error:
            timing.progress(f"{timing.problem.id}: the runner ended")
            if method == "graph" and not begun and error.status in _ENDED and not timing.captured:
                method = "events"  # the code may end its process where it may not allocate memory
                contents = _Contents(timing, method, pool)
                continue
            return unmeasured(ENDS.get(error.status, Verdict.FAIL), target, str(error))
        except _TooSlowError as error:
            return unmeasured(Verdict.FAIL, target, str(error))
        except (MachineError, LoadError) as error:
            return unmeasured(Verdict.INFRA_ERROR, target, str(error))
    sizes = [timing.problem.minimal_bytes(case) for case in timed_cases(timing.problem, timing.seed, method)]
    return concluded(processes, target, sizes, [before, *(process.look.result() for process in begun)])


def concluded(
    processes: Sequence[Sequence[CaseTimes]],
    target: float,
    sizes: Sequence[int | None],
    looks: Sequence[Condition | None],
) -> Measured:
    """The record of enough processes for a verdict.

    Args:
        processes: the times of each, case by case.
        target: the speedup to reach.
        sizes: minimal bytes of each case, where they are known.
        looks: at the condition of the device, before all and after each process.
    """
    shared = looks[0] is not None and bool(looks[0].others)
    result = speed.assessed(processes, target, sizes, shared=shared)
    untrusted = result.verdict is Verdict.UNTRUSTED
    reasons = dict.fromkeys(reason for process in processes for reason in speed.doubts(process))
    return Measured(_with_condition(result, looks), tuple(reasons) if untrusted else ())


def timed_cases(problem: KernelProblem, seed: int, method: str) -> list[Case]:
    """The timing cases that ``method`` measures: with host pointers only those as small as the course's."""
    cases = problem.timing_cases(seed)
    sizes = [problem.minimal_bytes(case) for case in cases]
    most = max(MOST_HOST_BYTES, min(sizes)) if method == "host" else math.inf
    return [case for case, size in zip(cases, sizes, strict=True) if size <= most]


def _with_condition(result: PerformanceResult, looks: Sequence[Condition | None]) -> PerformanceResult:
    """``result`` with the device's condition, and with a remark where that makes the verdict doubtful."""
    seen = [GpuCondition.model_validate(asdict(look)) for look in looks if look is not None]
    before, *during = looks
    remarks = doubts(before, [look for look in during if look is not None]) if before is not None else ()
    message = result.message
    if remarks and result.verdict not in {Verdict.PASS, Verdict.INFRA_ERROR}:
        message = "; ".join(filter(None, (message, "doubtful: " + ", ".join(remarks))))
    return result.model_copy(update={"condition": seen, "message": message, "info": [*result.info, *remarks]})


def unmeasured(verdict: Verdict, target: float, message: str) -> Measured:
    """What there is of a measurement that ended early."""
    result = PerformanceResult(verdict=verdict, target=target, message=f"timing ended early: {message}")
    return Measured(result, (message,) if verdict is Verdict.UNTRUSTED else ())


class _Contents:
    """What the processes are given, drawn while others are timed: that of the next one, too, if it is needed.

    Attributes:
        names: of the cases.
    """

    def __init__(self, timing: Timing, method: str, pool: Threads) -> None:
        self._timing, self._method, self._pool = timing, method, pool
        self._cases = timed_cases(timing.problem, timing.seed, method)
        self.names = tuple(case.name for case in self._cases)
        self._drawn = [self._draw(index) for index in range(AGREEING)]

    def of(self, index: int) -> list[Future[_Prepared]]:
        """The cases of process ``index``, which asks once; the first ones are there before the others."""
        if index == len(self._drawn):
            self._drawn.append(self._draw(index))
        coming, self._drawn[index] = self._drawn[index], []
        return coming

    def _draw(self, index: int) -> list[Future[_Prepared]]:
        return [self._pool.submit(self._prepared, index, number) for number in range(len(self._cases))]

    def _prepared(self, index: int, number: int) -> _Prepared:
        timing, share = self._timing, max(1, self._pool.count // len(self._cases))
        source = Random(f"{timing.seed}/{timing.problem.id}/{index}/{number}")
        return _prepared(timing, self._cases[number], self._method, source, share)


def _processes(
    timing: Timing,
    index: int,
    contents: _Contents,
    goal: Goal,
    pool: Threads,
    runners: _Runners,
) -> list[_Process]:
    """Process ``index``, and where it is the first one, those that have to agree with it.

    These have the GPU in turn, case by case: one has it while the other prepares a case or fetches outputs.
    If one fails, the others end before their next case.

    Raises:
        Exception: what the first of them raises; all have ended by then.
    """
    if index or timing.effort.at_once == 1:
        return [_process(timing, index, contents, goal, pool, runners)]
    failed: list[BaseException] = []

    def progress(text: str) -> None:
        if failed:
            raise failed[0]
        timing.progress(text)

    def measured(number: int) -> _Process:
        try:
            return _process(replace(timing, progress=progress), number, contents, goal, pool, runners)
        except BaseException as error:
            failed.append(error)
            raise

    with ThreadPoolExecutor(AGREEING) as several:
        together = [several.submit(measured, number) for number in range(AGREEING)]
    if failed:
        raise failed[0]
    return [process.result() for process in together]


def _process(
    timing: Timing,
    index: int,
    contents: _Contents,
    goal: Goal,
    pool: Threads,
    runners: _Runners,
) -> _Process:
    """All timing cases in one fresh runner.

    A case in which the submission is slow is measured after the others, because they may show that the
    submission cannot reach its target anyway.

    Raises:
        _TooSlowError: the submission cannot reach its target.
    """
    problem, looks = timing.problem, timing.effort.looks[index]
    with runners.next() as session:
        coming = contents.of(index)
        done: dict[str, _Sweeps] = {}
        slow: dict[str, float] = {}
        while coming:
            drawn = coming.pop(0)
            prepared = drawn.result()
            name = prepared.case.name
            timing.progress(f"{problem.id}: timing {name}, process {index + 1}")
            sweeps = _Sweeps(timing, session, prepared, pool)
            with sweeps.timed(WARM_SECONDS if done else HEAT_SECONDS):
                if name not in slow and (speedup := sweeps.too_slow()) is not None:
                    slow[name] = speedup
                    _check_reachable(goal.target, slow, len(contents.names))
                    coming.append(drawn)
                else:
                    sweeps.measure(looks[0])
                    done[name] = sweeps
        ordered = tuple(done[name] for name in contents.names)
        _go_on(timing, index, goal, ordered)
        look = pool.submit(timing.look, f"at the end of process {index + 1}")  # it is still as it was
    return _Process(ordered, look)


def _go_on(timing: Timing, index: int, goal: Goal, measured: Sequence[_Sweeps]) -> None:
    """Add blocks to all cases until the verdict is clear, or they have as many as they may.

    Times that cannot be believed do not become better by more of them.
    """
    for blocks in timing.effort.looks[index][1:]:
        times = [sweeps.times() for sweeps in measured]
        if speed.doubts(times) or clear(*combined(times), goal):
            return
        for sweeps in measured:
            timing.progress(f"{timing.problem.id}: timing {sweeps.name} again, process {index + 1}")
            with sweeps.timed(WARM_SECONDS):
                sweeps.add(blocks)


def _check_reachable(target: float, slow: Mapping[str, float], cases: int) -> None:
    """Check that a submission with the speedups ``slow`` in some of its cases can still reach its target.

    Raises:
        _TooSlowError: it would miss the target even with the speedup ``FASTEST`` in all other cases.
    """
    most = (math.prod(slow.values()) * FASTEST ** (cases - len(slow))) ** (1 / cases)
    if most < target:
        seen = ", ".join(f"{name} {speedup:.2g}x" for name, speedup in slow.items())
        raise _TooSlowError(f"too slow to go on ({seen}); does one thread, or one block, do all the work?")


@dataclass(frozen=True)
class _Prepared:
    """A case with its plan, its usual bases and an iterator of novel bases, the first already drawn.

    ``judged`` is how much of its outputs is judged at a time.
    """

    case: Case
    plan: Plan
    bases: Bases
    novel: Iterator[Bases]
    judged: tuple[Extent, ...]


def _prepared(timing: Timing, case: Case, method: str, source: Random, share: int) -> _Prepared:
    seeds = iter(lambda: source.getrandbits(48), None)
    first = timing.problem.inputs(replace(case, seed=next(seeds)))
    plan = _plan(timing, case, first, method)
    usual = draw(timing.problem, case, seeds, plan.slots, first)
    calls = novel_calls(plan, timing.effort.novel_bytes)
    novel = (draw(timing.problem, case, seeds, plan.slots, novel=calls) for _ in repeat(None))
    judged = extents(timing.problem, case, first, share)
    return _Prepared(case, plan, usual, chain([next(novel)], novel), judged)


def novel_calls(plan: Plan, most_bytes: float) -> int:
    """How many calls of a sweep on new contents are made: one at least."""
    each = sum(layout.data_bytes(array) for array in calls.arrays(plan.call))
    return max(1, int(min(plan.slots, most_bytes / each)))


@dataclass
class _Seen:
    """What was measured of one case until now; see ``CaseTimes``."""

    pairs: list[Block] = field(default_factory=list)
    same: list[Block] = field(default_factory=list)
    stream: list[float] = field(default_factory=list)
    novel: tuple[float, ...] = ()
    batches: list[tuple[str, int, float]] = field(default_factory=list)
    stopped: list[tuple[int, float]] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    looks: list[int] = field(default_factory=list)


class _Sweeps:
    """The sweeps of one case in one process, on several sets of bases, one after the other."""

    def __init__(
        self,
        timing: Timing,
        session: TimedSession,
        prepared: _Prepared,
        pool: Threads,
    ) -> None:
        self._session, self._case, self._plan = session, prepared.case, prepared.plan
        self._timing, self._effort = timing, timing.effort
        self._novel_calls = novel_calls(self._plan, timing.effort.novel_bytes)
        self._baseline_calls = self._plan.slots
        self._random = SystemRandom()
        self._bases, self._novel_bases = prepared.bases, prepared.novel
        self._verifier = Verifier(
            timing.problem, prepared.case, prepared.judged, pool, self._plan.slots, self._random
        )
        self._seen = _Seen()
        self._drawn: list[list[Content]] = []
        self.name = self._case.name

    @contextmanager
    def timed(self, warm_up: float) -> Iterator[None]:
        """Have the GPU alone, with the runner prepared for the case and warm.

        Others may use the GPU while the runner prepares the case, in place of another, and while the outputs
        that were kept are fetched. After that they are being compared.
        """
        self._session.prepare(self._plan, self._bases.arrays, self._timing.shared)
        self._drawn = [self._bases.contents(self._plan.slots, self._random) for _ in range(DRAWN)]
        with self._timing.alone():
            self.heat(warm_up)
            yield
        self._verifier.fetch(self._session, self._timing.shared)
        self._verifier.compare()

    def _contents(self) -> list[Content]:
        """What no sweep has met yet in this order; the runner is told only when a sweep is due."""
        return self._drawn.pop() if self._drawn else self._bases.contents(self._plan.slots, self._random)

    def _calls(self, arm: str) -> int | None:
        """After how many calls a sweep of the baseline ends; None for all."""
        return self._baseline_calls if arm == "baseline" and self._baseline_calls < self._plan.slots else None

    def _shorten_baseline(self) -> None:
        """Let sweeps of the baseline end early if it is so much slower that a part of one tells as much."""
        baseline, submission = self._sweep("baseline"), self._sweep("submission")
        enough = max(self._effort.baseline_seconds, BASELINE_SHARE * submission)
        if 0 < enough < baseline:
            self._baseline_calls = math.ceil(self._plan.slots * enough / baseline)

    def _sweep(self, arm: str, *, sampled: bool = False, whole: bool = False) -> float:
        """The seconds of one sweep; which of its outputs are verified is chosen only afterwards.

        Those of a sweep of the baseline that ends early are multiplied to be those of a whole one.
        """
        contents, calls = self._contents(), self._calls(arm)
        seconds = self._session.sweep(arm, contents, calls)
        if calls is not None:
            seconds *= self._plan.slots / calls
        if sampled:
            self._verifier.sample(self._session, self._bases, contents, whole=whole)
        return seconds

    def _block(self, whole: int | None = None) -> tuple[Block, Block]:
        """Six sweeps: the baseline against the submission, and the same sweeps of it against two more.

        In the submission's sweep number ``whole``, one call is verified entirely.
        """
        seen = 0

        def seconds(arm: str) -> float:
            nonlocal seen
            submission = arm == "B"
            sweep = self._sweep(
                "submission" if submission else "baseline",
                sampled=submission,
                whole=submission and seen == whole,
            )
            seen += submission
            return sweep

        order = in_turn(self._random)
        return against(order, [seconds(arm) for arm in order])

    def _stopped(self, most: int) -> tuple[int, float]:
        """The number of calls and the seconds of a sweep that ends after at most ``most`` calls, at random.

        All inputs are in place when a sweep begins, so one call could do the work of all of them. It does so
        in this sweep too, which therefore takes longer than its calls should.
        """
        contents = self._contents()
        calls = self._random.randint(1, most)
        seconds = self._session.sweep("submission", contents, calls)
        self._verifier.sample(self._session, self._bases, contents, made=calls)
        return calls, seconds

    def too_slow(self) -> float | None:
        """The speedup of the best of ``ATTEMPTS`` calls if all of them are too slow to measure, else None."""
        slots = self._plan.slots
        baseline = self._sweep("baseline")
        seen: list[float] = []
        while len(seen) < ATTEMPTS:
            sweep = slots * self._session.sweep("submission", self._contents(), 1)
            seen.append(baseline / sweep if sweep > SLOW_SWEEP else math.inf)
            if not seen[-1] < SLOW_SPEEDUP:
                return None
        return max(seen)

    def heat(self, most: float) -> None:
        """Run the baseline until the GPU has raised its clocks, for ``most`` seconds at the most.

        It has where two batches in a row take equally long for the GPU; a first sweep may load code. The
        runner says how long, as the judge's clock varies by more than what is looked for. How long batches
        are, and all of them together, is told by the judge's.
        """
        heated, before, length = 0.0, math.inf, 1
        while heated < most:
            contents = [self._contents() for _ in range(length)]
            seconds, device = self._session.batch("baseline", contents, self._calls("baseline"))
            heated += seconds
            if seconds < HEAT_BATCH_SECONDS and length < MOST_SWEEPS:
                length = min(MOST_SWEEPS, max(length + 1, math.ceil(HEAT_BATCH_SECONDS * length / seconds)))
                continue
            sweep, last = device / length, before
            before = sweep
            if abs(sweep - last) < self._effort.settled * sweep:
                return

    def _novel(self, bases: Bases, warm_up: float) -> float:
        """The seconds of a sweep of the submission whose calls meet the novel ``bases``, one each.

        The oracle has to work for each base of a sweep. As many bases as slots would be too much work for
        every sweep, so no other one meets them.
        """
        usual, made, slots = self._bases, self._novel_calls, self._plan.slots
        self._session.add(bases.arrays)
        self.heat(warm_up)
        self._sweep("baseline")  # the GPU has lowered its clocks meanwhile
        contents = [
            *(Content(len(usual.inputs) + base, turn) for base, turn in bases.contents(made, self._random)),
            *self._contents()[made:],
        ]
        together = Bases((*usual.inputs, *bases.inputs), usual.turns, (*usual.unwritten, *bases.unwritten))
        calls = made if made < slots else None
        seconds = self._session.sweep("submission", contents, calls)
        self._verifier.sample(self._session, together, contents, made=calls)
        return seconds

    def _novel_sweeps(self, usual: float) -> tuple[float, ...]:
        """The seconds of sweeps on new contents, until one takes no longer than ``usual`` for its calls."""
        seconds: list[float] = []
        for bases in islice(self._novel_bases, NOVEL_SWEEPS):
            # The clocks may have sunk while bases were drawn, and one sweep would not raise them.
            seconds.append(self._novel(bases, WARM_SECONDS if seconds else 0))
            made, slots = self._novel_calls, self._plan.slots
            leeway = trust.leeway_of_calls(self._plan.method, made, slots)
            if not trust.remembers(seconds, usual * made / slots, leeway):
                break
        return tuple(seconds)

    def measure(self, blocks: int) -> None:
        """Run the first blocks, with new bases and all that the times are checked by at random among them."""
        seen = self._seen
        self._shorten_baseline()
        self._sweep(NOTHING)
        due = [(self._random.randrange(blocks), arm) for arm, count in PAIRS.items() for _ in range(count)]
        half = self._plan.slots // 2
        stops = [(self._random.randrange(blocks), 1 if number % 2 else half) for number in range(STOPS)]
        renewal = self._random.randrange(max(1, blocks // 4), blocks)
        spans = [range(blocks)] if self._effort.whole == 1 else [range(renewal), range(renewal, blocks)]
        entirely = {self._random.choice(span) for span in spans}
        for index in range(blocks):
            if index == renewal:
                seen.novel = self._novel_sweeps(
                    median(time for block in seen.pairs for time in block.times("B"))
                )
            self._add_block(self._random.randrange(2) if index in entirely else None)
            for arm in [arm for position, arm in due if position == index]:
                seen.batches += self._batches(arm, seen.pairs[-1])
            for most in [most for position, most in stops if position == index]:
                seen.first.append(self._session.sweep("stream", self._contents(), 1))
                seen.stopped.append(self._stopped(most))
        self._looked(blocks)

    def add(self, blocks: int) -> None:
        """Run more blocks until there are as many."""
        while len(self._seen.pairs) < blocks:
            self._add_block()
        self._looked(blocks)

    def _add_block(self, whole: int | None = None) -> None:
        pair, same = self._block(whole)
        self._seen.pairs.append(pair)
        self._seen.same.append(same)
        self._seen.stream.append(self._sweep("stream"))

    def _looked(self, blocks: int) -> None:
        if self._effort.sequential:
            self._seen.looks.append(blocks)

    def times(self) -> CaseTimes:
        """What was measured until now; outputs may still have to be compared."""
        seen = self._seen
        return CaseTimes(
            case=self.name,
            method=self._plan.method,
            slots=self._plan.slots,
            blocks=tuple(seen.pairs),
            same=tuple(seen.same),
            stream=tuple(seen.stream),
            novel=seen.novel,
            batches=tuple(seen.batches),
            verified=self._verifier.verified,
            wrong=self._verifier.wrong,
            stopped=tuple(seen.stopped),
            first=tuple(seen.first),
            early=self._verifier.early,
            looks=tuple(seen.looks),
            novel_calls=self._novel_calls,
            baseline_calls=self._baseline_calls,
        )

    def verified(self) -> CaseTimes:
        """``times`` with what comparing the outputs of all sweeps shows."""
        self._verifier.settle()
        return self.times()

    def _batches(self, arm: str, block: Block) -> Iterator[tuple[str, int, float]]:
        """A batch of ``arm`` and one of ``NOTHING``, of the same random length and in random order.

        The outputs of the submission's last sweep are verified, so that it has to do its work in a batch too.
        """
        seconds = median(block.times("B" if arm == "submission" else "A"))
        if arm == "baseline":
            seconds *= self._baseline_calls / self._plan.slots
        fewest, most = self._effort.batch_sweeps(seconds) if 0 < seconds < math.inf else (1, 1)
        length = self._random.randint(fewest, most)
        for name in self._random.sample((arm, NOTHING), 2):
            contents = [self._contents() for _ in range(length)]
            yield name, length, self._session.batch(name, contents, self._calls(name)).judge
            if name == "submission":
                self._verifier.sample(self._session, self._bases, contents[-1])


def _plan(timing: Timing, case: Case, inputs: Inputs, method: str) -> Plan:
    problem = timing.problem.launcher(case)
    memory = Memory.HOST if method == "host" else Memory.DEVICE
    call = Call(problem.entry_point, arguments(problem, case, inputs), timing.seconds, memory)
    arrays = calls.arrays(call)
    sizes = {array.name: layout.data_bytes(array) for array in arrays}
    parameters = [array for array in problem.arrays if array.name in sizes]
    written = frozenset(p.name for p in parameters if p.role is not Role.INPUT)
    read = sum(sizes[p.name] for p in parameters if p.role is not Role.OUTPUT)
    wrote = sum(sizes[name] for name in written)
    scale = problem.minimal_bytes(case) / (read + wrote)
    steps, scratch = _baseline(timing, problem, case, call, list(sizes))
    return Plan(
        call=call,
        written=written,
        method=method,
        slots=HOST_SLOTS if method == "host" else slots(sum(sizes.values()), timing.l2_bytes),
        turns={name: turns(problem, inputs) for name in sizes if name in problem.turning},
        libraries=timing.baseline,
        steps=steps,
        scratch=scratch,
        reads=_multiple(read * scale),
        writes=_multiple(wrote * scale),
    )


def _baseline(
    timing: Timing, problem: KernelProblem, case: Case, call: Call, names: Sequence[str]
) -> tuple[tuple[Step, ...], tuple[int, ...]]:
    """What the submission is compared with, no step for the streaming kernel, and the bytes of temporaries.

    ``names`` are those of the call's arrays in order.
    """
    if timing.rival:
        return (timing.rival(call),), ()
    if timing.measure == "share_of_limit":
        return (), ()
    program = problem.unfused(case)
    if timing.measure == "share_of_arithmetic":
        return arithmetic(program), ()
    extra = temporaries(program, names)
    numbers = {name: number for number, name in enumerate([*names, *extra])}
    return tuple(step(operation, numbers) for operation in program), tuple(extra.values())


def in_turn(random: Random) -> tuple[str, ...]:
    """The order of a block: baseline A, submission B and the baseline as C, then they once more in reverse.

    Whatever drifts evenly cancels out of both comparisons.
    """
    half = random.sample(("A", "B", "C"), 3)
    return (*half, *reversed(half))


def against(order: Sequence[str], seconds: Sequence[float]) -> tuple[Block, Block]:
    """The times of such a block: A against B, and the same ones of A against C."""

    def block(other: str) -> Block:
        arms = [(arm, time) for arm, time in zip(order, seconds, strict=True) if arm in {"A", other}]
        first, second, third, fourth = (time for _, time in arms)
        sides = "".join("A" if arm == "A" else "B" for arm, _ in arms)
        return Block(sides, (first, second, third, fourth))

    return block("B"), block("C")


def slots(set_bytes: int, l2_bytes: int) -> int:
    """The number of rotating buffer sets with which every call finds a cold cache."""
    return min(MOST_SLOTS, max(2, -(-CACHES * l2_bytes // set_bytes)))


def _multiple(size: float) -> int:
    return max(16, round(size / 16) * 16)
