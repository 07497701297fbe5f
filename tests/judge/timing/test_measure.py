"""The measuring loop against a fake GPU: a clock and arrays that a test controls."""

from __future__ import annotations

import math
import re
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Self, get_args

import numpy as np
import pytest

from grader.devices.condition import Condition
from grader.devices.device import Memory, Status
from grader.devices.runner import RunnerError
from grader.devices.timed import Clocks, NotCapturedError
from grader.judge.timing.measure import (
    PRECISE,
    STOPS,
    UNTIL_CLEAR,
    Effort,
    Measured,
    Timing,
    long_batch,
    measure,
    short_batch,
    slots,
    timed_cases,
)
from grader.judge.timing.program import step
from grader.judge.timing.statistics import BLOCKS, LOOKS, Goal
from grader.judge.timing.verification import Verifier
from grader.problems.operations import Kind, Operation, dense, mapped, reduced, zipped
from grader.problems.problem import (
    ArrayParameter,
    Candidate,
    Case,
    Expectation,
    Inputs,
    KernelProblem,
    Role,
    ScalarParameter,
    Slices,
    StreamParameter,
)
from grader.records.record import KernelMeasure
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from grader.devices.timed import Arrays, Content, Piece, Plan
    from grader.records.record import PerformanceResult

N, SLOTS = 256, 20
POISON = np.frombuffer(b"\xff" * 4, np.float32)
ARMS = ("baseline", "submission")
ONE_BY_ONE = replace(UNTIL_CLEAR, at_once=1)  # the fake GPU tells what came after what


def inputs(case: Case) -> Inputs:
    x = np.random.default_rng(case.seed).normal(size=N).astype(np.float32)
    return Inputs({"x": x}, {"y": (N,)}, {"n": N})


def oracle(_: Case, given: Inputs) -> dict[str, Expectation]:
    expected = 2.0 * given.wide("x")
    return {"y": Expectation((Candidate(expected, np.full(expected.shape, 1e-6)),))}


def some(given: Inputs, index: np.ndarray) -> Inputs:
    return Inputs({"x": given.arrays["x"][index]}, {"y": index.shape}, {"n": index.size})


PROBLEM = KernelProblem(
    id="double",
    file="double.cu",
    entry_point="launch_double",
    parameters=(
        ArrayParameter("y", Role.OUTPUT),
        ArrayParameter("x", Role.INPUT),
        ScalarParameter("n", "int"),
        StreamParameter("stream"),
    ),
    groups=("all",),
    cases=lambda _: (),
    timing_cases=lambda seed: (Case("256", "all", {"n": N}, "normal", seed),),
    inputs=inputs,
    oracle=oracle,
    minimal_bytes=lambda _: 8 * N,
    unfused=lambda _: (mapped("y", "multiply constant", dense("x", N), 2.0),),
    slices=(Slices(("y",), lambda _: N, some),),
    turning=("x", "y"),
)


class FakeSession:
    """Honest unless told otherwise; time per sweep is ``base`` over the speedup, with noise."""

    def __init__(self, device: FakeDevice, number: int) -> None:
        self.device, self.random = device, Random(number)
        self.held: Sequence[Content] = ()
        self.rows: set[bytes] = set()
        self.sweeps = self.prepared = 0
        self.fresh, self.additions, self.warm = False, 0, False
        self.kept: list[dict[str, np.ndarray]] = []
        self.log: list[str] = []
        device.logs.append(self.log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.device.closed += 1

    def prepare(
        self, plan: Plan, bases: Sequence[Arrays], using: Callable[[], AbstractContextManager[object]]
    ) -> None:
        with using():
            self._prepare(plan, bases)

    def _prepare(self, plan: Plan, bases: Sequence[Arrays]) -> None:
        self.device.methods.append(plan.method)
        self.device.plans.append(plan)
        if plan.method == "graph" and not self.device.captures:
            raise NotCapturedError("cudaErrorStreamCaptureUnsupported")
        assert not self.device.held
        self.plan, self.bases, self.usual = plan, bases, len(bases)
        self.speedup = self.device.speedups[self.prepared] if self.device.speedups else self.device.speedup
        self.prepared += 1

    def add(self, bases: Sequence[Arrays]) -> None:
        assert self.device.held
        assert len(bases) == (self.device.novel or self.plan.slots)
        self.bases, self.fresh = [*self.bases[: self.usual], *bases], True
        assert len({base["x"].tobytes() for base in self.bases}) == len(self.bases)
        self.log.append("add")
        self.additions += 1
        self.warm = False

    def time(self, arm: str) -> float:
        base = {"baseline": 1e-2, "stream": 0.9e-3, "nothing": 0.0, "submission": 1e-2 / self.speedup}
        return base[arm] * math.exp(self.random.gauss(0, 0.002))

    def remembered(self, contents: Sequence[Content]) -> float:
        """What share of a sweep's time is spent by whom a row that was seen before costs a tenth."""
        rows = [self.bases[content.base]["x"].tobytes() for content in contents]
        new = [row not in self.rows and row not in rows[:place] for place, row in enumerate(rows)]
        self.rows |= set(rows)
        return sum(1.0 if one else 0.1 for one in new) / len(new)

    def sweep(self, arm: str, contents: Sequence[Content], calls: int | None = None) -> float:
        assert self.device.held
        assert len(contents) == self.plan.slots
        self.made = SLOTS if calls is None else calls
        if calls is not None and arm == "stream":
            return self.time(arm) * calls / SLOTS + 1e-5
        if calls is not None and arm == "baseline":
            self.log.append(arm)
            return self.time(arm) * calls / SLOTS * self.device.pads
        if calls is not None:
            assert arm == "submission"
            self.held = contents
            self.log.append(f"the first {calls}")
            loading = 0.0 if self.device.stops else self.device.loads
            self.device.stops.append(calls)
            return loading + self.time(arm) / self.device.lie * (1 if self.device.prepares else calls / SLOTS)
        self.device.seen.append(tuple(contents))
        self.log.append(arm)
        self.held = contents
        if arm != "submission":
            return self.time(arm) * (self.device.pads if arm == "baseline" else 1)
        self.sweeps += 1
        if self.device.remembers:
            return self.time(arm) * self.remembered(contents)
        replay = self.device.replays and not self.fresh
        stumble = self.device.stumbles and self.fresh and self.additions == 1
        stumble |= self.device.sleeps and self.fresh and not self.warm
        self.fresh = False
        return self.time(arm) / self.device.lie / (2 if replay else 1) * (2 if stumble else 1)

    def batch(self, arm: str, contents: Sequence[Sequence[Content]], calls: int | None = None) -> Clocks:
        assert self.device.held
        assert calls is None or arm == "baseline"
        share = (calls or SLOTS) / SLOTS
        if self.device.dies:
            raise RunnerError(self.device.status, "the code died of SIGSEGV")
        self.device.lengths.append(len(contents))
        self.log.append(f"batch of {arm}")
        self.held, self.made, self.warm = contents[-1], SLOTS, True
        if arm == "submission":
            self.sweeps += len(contents)
        if arm == "submission" and self.device.remembers:
            times = [self.time(arm) * self.remembered(one) for one in contents]
        else:
            times = [self.time(arm) * share for _ in contents]
        late = self.device.late and self.random.uniform(0, 0.1)
        return Clocks(1e-4 + late + sum(5e-3 + time for time in times), sum(times))

    def fetch(self, using: Callable[[], AbstractContextManager[object]]) -> list[dict[str, np.ndarray]]:
        with using():
            assert not self.device.held
        kept, self.kept = self.kept, []
        return kept

    def keep(self, pieces: Sequence[Piece]) -> None:
        assert self.device.held
        parts = []
        if len({piece.slot for piece in pieces}) == 1 and self.made == SLOTS:
            self.log.append(f"all of slot {pieces[0].slot}")
        for piece in pieces:
            base, turn = self.held[piece.slot]
            y = 2 * np.roll(self.bases[base]["x"], turn)
            y[self.device.spoils : self.device.spoils + 1] *= 1.001
            if self.device.lazy and piece.slot == self.plan.slots - 1:
                y[:] = np.nan
            if piece.slot >= self.made and not self.device.merges:
                y[:] = POISON
            if self.sweeps > self.device.works:
                y[:] = np.nan
            parts.append(y[piece.first : piece.first + piece.elements])
        self.kept.append({"y": np.concatenate(parts)})


class FakeDevice:
    l2_bytes = SLOTS * 8 * N // 5

    def __init__(self, speedup: float = 10, **traits: object) -> None:
        self.speedup: float = speedup
        self.speedups: list[float] = []  # of one case after the other, as they are prepared
        self.lie, self.spoils, self.lazy = 1.0, N, False
        self.shown, self.slowdowns, self.others, self.interrupted = True, (), 0, False
        self.captures, self.replays, self.dies, self.stumbles = True, False, False, False
        self.remembers, self.works, self.pads = False, math.inf, 1.0
        self.merges, self.prepares, self.sleeps, self.loads = False, False, False, 0.0
        self.late = False  # whether the judge hears of the end of a batch only some time after it
        self.status, self.novel = Status.CRASHED, 0
        self.__dict__.update(traits)
        self.methods: list[str] = []
        self.plans: list[Plan] = []
        self.seen: list[tuple[Content, ...]] = []
        self.lengths: list[int] = []
        self.stops: list[int] = []
        self.logs: list[list[str]] = []  # of each process: what came, one after the other
        self.opened = self.closed = 0
        self.held = False
        self.gpu = threading.RLock()

    def progress(self, what: str) -> None:
        if self.interrupted:
            raise InterruptedError(what)

    def look(self, moment: str) -> Condition | None:
        slow = () if moment == "before timing" else self.slowdowns
        return Condition(moment, celsius=90, slowdowns=slow, others=self.others) if self.shown else None

    def open(self) -> FakeSession:
        with self.gpu:
            assert not self.held
            self.opened += 1
            return FakeSession(self, self.opened)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While this is open, nobody else uses the GPU."""
        with self.gpu:
            assert not self.held
            self.held = True
            try:
                yield
            finally:
                self.held = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """While this is open, nobody has the GPU alone."""
        with self.gpu:
            yield


def run(
    device: FakeDevice,
    target: float = 5.0,
    memory: Memory = Memory.DEVICE,
    problem: KernelProblem = PROBLEM,
    over: KernelMeasure = "speedup",
    *,
    captured: bool = False,
    steps: tuple[float, ...] = (),
    effort: Effort = ONE_BY_ONE,
) -> Measured:
    baseline = {Path("generic.so"): ("baseline_map",)}
    timing = Timing(problem, device.l2_bytes, device.open, baseline, 1, 10, device.progress, device.look)  # type: ignore[arg-type]
    timing = replace(
        timing, measure=over, captured=captured, effort=effort, alone=device.alone, shared=device.shared
    )
    measured = measure(timing, Goal(target, steps, share=0.4), memory)
    assert device.opened == device.closed
    return measured


def test_what_a_speed_is_over_becomes_the_steps_of_the_baseline() -> None:
    product = Operation(
        Kind.MATMUL, "matmul", dense("y", 1, 16, 16), (dense("x", 1, 16, 8), dense("x", 1, 8, 16))
    )
    problem = replace(PROBLEM, unfused=lambda _: (product, mapped("y", "exp", dense("y", 1, 16, 16))))
    found: dict[KernelMeasure, list[str]] = {}
    for over in get_args(KernelMeasure):
        device = FakeDevice(10)
        assert run(device, problem=problem, over=over).performance.verdict is Verdict.PASS
        found[over] = [step.function for step in device.plans[0].steps]
    assert found == {
        "speedup": ["typed_matmul", "baseline_map"],
        "share_of_limit": [],
        "share_of_arithmetic": ["launch_multiply_adds"],
    }
    (alone,) = device.plans[0].steps
    assert alone.arguments == (("array", 0), ("long", 16 * 16 * 8), ("int", 0), ("stream", 0))


def test_a_fast_kernel_passes_in_two_processes_with_its_numbers() -> None:
    device = FakeDevice(10)
    result = run(device).performance
    assert result.verdict is Verdict.PASS
    assert device.opened == 2
    assert result.speedup == pytest.approx(10, rel=0.01)
    low, high = result.interval or (0, 0)
    assert low <= 10.02
    assert high >= 9.98
    (case,) = result.cases
    assert case.bandwidth_fraction == pytest.approx(0.9, rel=0.01)
    assert case.yours_us == pytest.approx(1e3 / 20, rel=0.02)
    assert case.minimal_bytes == 8 * N
    assert looks(result) == [(6,), (6,)]
    assert len(case.samples["process 1: blocks"]) == 4 * LOOKS[0]


def looks(result: PerformanceResult) -> list[tuple[int, ...]]:
    """After how many blocks each process looked whether its verdict is clear."""
    (case,) = result.cases
    samples = [case.samples.get(f"process {number}: looks") for number in range(1, 5)]
    return [tuple(map(int, sample)) for sample in samples if sample is not None]


def test_a_slow_kernel_fails_and_a_borderline_one_is_measured_four_times() -> None:
    slow = run(FakeDevice(3)).performance
    assert (slow.verdict, looks(slow)) == (Verdict.FAIL, [(6,), (6,)])
    border = FakeDevice(5.0)
    result = run(border).performance
    assert result.verdict is Verdict.AMBIGUOUS
    assert border.opened == 4
    assert looks(result) == [LOOKS[:3], LOOKS[:3], LOOKS[:4], LOOKS]
    # of a block each process has two of the submission, and it prepares the case again after each look
    assert [log.count("submission") for log in border.logs] == [2 + 2 * blocks for blocks in BLOCKS]
    assert len(border.methods) == 3 + 3 + 4 + 5


def test_a_kernel_at_a_step_of_points_is_measured_longer_than_one_between_steps() -> None:
    between = run(FakeDevice(3), steps=(2.5, 3.5)).performance
    assert (between.verdict, looks(between)) == (Verdict.FAIL, [(6,), (6,)])
    at_step = run(FakeDevice(3), steps=(3.0, 3.5)).performance
    assert (at_step.verdict, looks(at_step)) == (Verdict.FAIL, [LOOKS[:3], LOOKS[:3]])


def test_for_a_leaderboard_all_blocks_are_measured() -> None:
    device = FakeDevice(10)
    result = run(device, effort=PRECISE).performance
    assert (result.verdict, looks(result)) == (Verdict.PASS, [(), ()])
    (case,) = result.cases
    assert len(case.samples["process 2: blocks"]) == 4 * BLOCKS[0]
    assert max(device.lengths) > short_batch(1e-3)[1]


def test_nobody_has_the_gpu_while_waiting_for_outputs_to_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    device, held = FakeDevice(10), []
    settle = Verifier.settle
    monkeypatch.setattr(Verifier, "settle", lambda verifier: held.append(device.held) or settle(verifier))
    assert run(device).performance.verdict is Verdict.PASS
    assert held == [False] * 2


def test_the_second_runner_is_opened_together_with_the_first() -> None:
    device, both = FakeDevice(10), threading.Barrier(2, timeout=30)

    def opened() -> FakeSession:
        both.wait()
        return FakeDevice.open(device)

    device.open = opened  # type: ignore[method-assign]
    assert run(device).performance.verdict is Verdict.PASS


def test_the_processes_that_have_to_agree_have_the_gpu_in_turn_case_by_case() -> None:
    device = FakeDevice(10)
    two = replace(
        PROBLEM,
        timing_cases=lambda seed: (
            Case("a", "all", {"n": N}, "normal", seed),
            Case("b", "all", {"n": N}, "normal", seed),
        ),
    )
    both, order = threading.Barrier(2, timeout=30), list[str]()

    def progress(what: str) -> None:
        order.append(what.partition("timing ")[2])
        if what.endswith(("a, process 1", "a, process 2")):
            both.wait()

    device.progress = progress  # type: ignore[method-assign]
    result = run(device, problem=two, effort=UNTIL_CLEAR).performance
    assert result.verdict is Verdict.PASS
    assert sorted(order[:2]) == ["a, process 1", "a, process 2"]
    assert sorted(order[2:]) == ["b, process 1", "b, process 2"]


def test_where_one_of_them_fails_the_other_ends_before_its_next_case() -> None:
    device = FakeDevice(dies=True)
    two = replace(
        PROBLEM,
        timing_cases=lambda seed: (
            Case("a", "all", {"n": N}, "normal", seed),
            Case("b", "all", {"n": N}, "normal", seed),
        ),
    )
    result = run(device, problem=two, effort=UNTIL_CLEAR).performance
    assert result.verdict is Verdict.FAIL
    assert "SIGSEGV" in result.message


def test_a_baseline_that_is_much_slower_makes_fewer_calls() -> None:
    for speedup, calls in ((10.0, 4), (3.0, 14), (1.5, SLOTS)):
        device = FakeDevice(speedup)
        (case,) = run(device, target=1.0).performance.cases
        assert case.samples["process 1: baseline calls"][0] == pytest.approx(calls, abs=1)
        assert case.speedup == pytest.approx(speedup, rel=0.01)
        assert case.baseline_us == pytest.approx(1e-2 / SLOTS * 1e6, rel=0.01)
    (case,) = run(FakeDevice(10), effort=PRECISE).performance.cases
    assert case.samples["process 1: baseline calls"] == [SLOTS]


def test_in_a_block_the_baseline_meets_the_submission_and_itself() -> None:
    (case,) = run(FakeDevice(10)).performance.cases
    orders, seconds = (case.samples[f"process 1: {name}"] for name in ("order", "blocks"))
    same_orders, same = (case.samples[f"process 1: same{name}"] for name in (" order", ""))

    def baseline(orders: list[float], times: list[float]) -> list[float]:
        places = [(0, 3) if order == 0 else (1, 2) for order in orders]
        return [times[4 * block + place] for block, pair in enumerate(places) for place in pair]

    assert baseline(orders, seconds) == baseline(same_orders, same)
    assert len({*same}) == len(same)


@pytest.mark.parametrize(
    ("sweep", "short", "long"), [(1e-4, (10, 20), (2, 24)), (1e-3, (1, 2), (2, 24)), (0.4, (1, 2), (1, 1))]
)
def test_batches_are_as_long_as_the_clock_needs(
    sweep: float, short: tuple[int, int], long: tuple[int, int]
) -> None:
    assert (short_batch(sweep), long_batch(sweep)) == (short, long)


def several(cases: int) -> KernelProblem:
    """The problem with so many timing cases."""
    return replace(
        PROBLEM,
        timing_cases=lambda seed: tuple(
            Case(f"case {number}", "all", {"n": N}, "normal", seed + number) for number in range(cases)
        ),
    )


def test_a_kernel_that_would_take_hours_fails_as_soon_as_it_cannot_pass() -> None:
    device = FakeDevice(1 / 150)
    performance = run(device, target=6.5, problem=several(4)).performance
    assert performance.verdict is Verdict.FAIL
    assert re.search(r"too slow to go on \(case 0 0\.006\d?x, case 1 0\.006\d?x\)", performance.message)
    assert device.stops == [1] * 6
    assert [len(log) for log in device.logs].count(0) == 1  # of two runners, nothing was called in one


def test_one_case_that_takes_hours_comes_last_where_the_others_may_outweigh_it() -> None:
    device = FakeDevice(speedups=[10, 1 / 150, 9, 1 / 150])
    performance = run(device, target=0.5, problem=several(3)).performance
    assert performance.verdict is Verdict.PASS
    assert [case.name for case in performance.cases] == ["case 0", "case 1", "case 2"]
    assert [case.speedup for case in performance.cases] == pytest.approx([10, 1 / 150, 9], rel=0.01)


@pytest.mark.parametrize("device", [FakeDevice(1 / 80), FakeDevice(10, loads=30.0)])
def test_a_slow_kernel_or_first_call_is_measured(device: FakeDevice) -> None:
    assert run(device, target=0.5).performance.speedup == pytest.approx(device.speedup, rel=0.01)


def test_the_warm_up_ends_by_the_clock_of_the_gpu_where_that_of_the_judge_varies() -> None:
    device = FakeDevice(10, late=True)
    run(device, effort=replace(ONE_BY_ONE, settled=0.02))
    warm_ups = [log[: log.index("baseline")] for log in device.logs]
    assert all(2 <= len(warm_up) <= 4 for warm_up in warm_ups)


def test_contents_change_places_and_batch_lengths_vary() -> None:
    device = FakeDevice()
    for _ in range(3):
        run(device)
    assert len(set(device.seen)) > len(device.seen) * 0.9
    assert len(set(device.lengths)) > 3
    assert 1 < min(set(device.lengths) - {1}) < 6  # the second may be the last


@pytest.fixture(scope="module")
def logs() -> list[list[str]]:
    """Of twenty processes, without what comes before the blocks and the sweeps on new contents."""
    devices = [FakeDevice() for _ in range(10)]
    for device in devices:
        run(device)
    found = []
    for log in (log for device in devices for log in device.logs):
        begin, renewal = log.index("nothing") + 1, log.index("add") + 1
        assert log[renewal : renewal + 2] == ["baseline", "submission"]
        found.append([*log[begin:renewal], *log[renewal + 2 :]])
    return found


def blocks_of(log: Sequence[str]) -> list[list[str]]:
    """What came in each block: a sweep of the stream ends its sweeps, and batches may follow."""
    ends = [place for place, what in enumerate(log) if what == "stream"]
    starts = [0, *(next(i for i in range(end, len(log)) if log[i] in ARMS) for end in ends[:-1])]
    return [list(log[start:end]) for start, end in zip(starts, [*starts[1:], len(log)], strict=True)]


def places(log: Sequence[str], start: str) -> tuple[int, ...]:
    """The numbers of the blocks in which something that begins with ``start`` came."""
    return tuple(
        number for number, block in enumerate(blocks_of(log)) for what in block if what.startswith(start)
    )


def test_nobody_knows_who_comes_first_in_a_block(logs: list[list[str]]) -> None:
    firsts = [tuple(next(what for what in block if what in ARMS) for block in blocks_of(log)) for log in logs]
    assert {len(first) for first in firsts} == {LOOKS[0]}
    assert set().union(*firsts) == set(ARMS)
    assert len(set(firsts)) > len(firsts) // 2


def test_nobody_knows_in_which_block_something_comes(logs: list[list[str]]) -> None:
    for arm in ARMS:
        assert len({places(log, f"batch of {arm}") for log in logs}) > len(logs) // 2
    assert len({places(log, "add") for log in logs}) > 1
    assert {len(places(log, "all of slot")) for log in logs} == {1}
    assert len({places(log, "all of slot") for log in logs}) > 2


def test_nobody_knows_of_which_call_all_is_verified(logs: list[list[str]]) -> None:
    slots = {what for log in logs for what in log if what.startswith("all of slot")}
    assert len(slots) > 3
    sweeps = {
        block[: block.index(what)].count("submission")
        for log in logs
        for block in blocks_of(log)
        for what in block
        if what in slots
    }
    assert len(sweeps) > 1


def test_nobody_knows_whether_a_batch_comes_before_or_behind_its_empty_one(logs: list[list[str]]) -> None:
    batches = [[what for what in log if what.startswith("batch")] for log in logs]
    assert {what == "batch of nothing" for each in batches for what in each[::2]} == {True, False}


def test_only_sweeps_on_new_contents_have_a_base_for_each_slot() -> None:
    device = FakeDevice(10)
    run(device)
    bases = [len({content.base for content in contents}) for contents in device.seen]
    assert sorted(bases)[-3:] == [1, SLOTS, SLOTS]  # the submission's in each process


def test_launchers_that_cannot_be_captured_are_timed_by_events_from_the_start() -> None:
    device = FakeDevice(captures=False)
    result = run(device).performance
    assert result.verdict is Verdict.PASS
    assert device.methods == ["graph", "events", "events"]
    assert result.cases[0].method == "events"


@pytest.mark.parametrize("traits", [{"captures": False}, {"dies": True}])
def test_what_has_to_be_captured_is_timed_in_no_other_way(traits: dict[str, bool]) -> None:
    device = FakeDevice(**traits)
    result = run(device, captured=True).performance
    assert result.verdict is Verdict.FAIL
    assert device.methods == ["graph"]
    assert ("cannot be captured" in result.message) is ("captures" in traits)


def test_host_launchers_are_timed_end_to_end() -> None:
    device = FakeDevice()
    assert run(device, memory=Memory.HOST).performance.cases[0].method == "host"


FEW_NOVEL = replace(ONE_BY_ONE, novel_bytes=3 * 8 * N + 1)


def test_of_large_arrays_a_few_calls_on_new_contents_suffice() -> None:
    device = FakeDevice(5, novel=3)
    result = run(device, target=2.0, effort=FEW_NOVEL).performance
    assert result.verdict is Verdict.PASS
    samples = result.cases[0].samples
    assert (samples["process 1: novel calls"], len(samples["process 1: novel"])) == ([3], 1)
    assert samples["process 1: novel"][0] == pytest.approx(2e-3 * 3 / SLOTS, rel=0.05)
    assert device.logs[0][device.logs[0].index("add") :][1:3] == ["baseline", "the first 3"]
    told = run(FakeDevice(5, novel=3, replays=True), target=2.0, effort=FEW_NOVEL)
    assert any("never seen before" in reason for reason in told.reasons)
    late = run(FakeDevice(5, novel=3, spoils=77), target=2.0, effort=FEW_NOVEL)
    assert any("outputs of timed calls are wrong" in reason for reason in late.reasons)


def test_clocks_that_sank_while_contents_were_drawn_accuse_nobody() -> None:
    result = run(FakeDevice(5, sleeps=True)).performance
    assert result.verdict is not Verdict.UNTRUSTED
    assert len(result.cases[0].samples["process 1: novel"]) == 2


@pytest.mark.parametrize("memory", Memory)
def test_one_slow_sweep_on_new_contents_accuses_nobody_but_five_do(memory: Memory) -> None:
    result = run(FakeDevice(5, stumbles=True), memory=memory).performance
    assert result.verdict is not Verdict.UNTRUSTED
    assert len(result.cases[0].samples["process 1: novel"]) == 2
    told = run(FakeDevice(5, replays=True), memory=memory)
    assert any("never seen before" in reason for reason in told.reasons)
    assert len(told.performance.cases[0].samples["process 1: novel"]) == 5
    beside = run(FakeDevice(5, replays=True, others=2), memory=memory)
    assert (beside.performance.verdict, beside.reasons) == (Verdict.INFRA_ERROR, ())


def test_with_host_pointers_large_shapes_are_left_out_as_the_bus_would_be_timed_for_minutes() -> None:
    def bytes_moved(case: Case) -> int:
        return int(case.sizes["n"])

    def cases(_: int) -> tuple[Case, ...]:
        return tuple(Case(str(n), "all", {"n": n}, "normal", 1) for n in sizes)

    problem = replace(PROBLEM, minimal_bytes=bytes_moved, timing_cases=cases)
    sizes = [1 << 10, 1 << 24, 1 << 26]
    assert [len(timed_cases(problem, 1, method)) for method in ("graph", "events", "host")] == [3, 3, 2]
    sizes = [1 << 27, 1 << 26]
    assert [case.name for case in timed_cases(problem, 1, "host")] == [str(1 << 26)]


@pytest.mark.parametrize(
    ("device", "words"),
    [
        (FakeDevice(10, spoils=77), "outputs of timed calls are wrong"),
        (FakeDevice(10, lazy=True), "outputs of timed calls are wrong"),
        (FakeDevice(5, lie=2.0), "by the judge's clock"),
        (FakeDevice(20), "at full bandwidth"),
        (FakeDevice(5, replays=True), "never seen before"),
        (FakeDevice(5, remembers=True), "never seen before"),
        (FakeDevice(5, works=2 * LOOKS[0] + 2), "outputs of timed calls are wrong"),
        (FakeDevice(5, pads=3.0), "reported for the baseline"),
        (FakeDevice(5, merges=True), "written before their call"),
        (FakeDevice(5, prepares=True), "for a first call"),
        (FakeDevice(5, lie=math.inf), "not a positive number"),
        (FakeDevice(5, lie=math.nan), "not a positive number"),
        (FakeDevice(5, lie=1e308), "at full bandwidth"),
    ],
    ids=[
        "wrong",
        "lazy",
        "clock",
        "physics",
        "replay",
        "memory",
        "later",
        "baseline",
        "merged",
        "ahead",
        "zero",
        "none",
        "denormal",
    ],
)
def test_what_contradicts_itself_is_untrusted_with_the_reason(device: FakeDevice, words: str) -> None:
    measured = run(device, target=2.0)
    assert measured.performance.verdict is Verdict.UNTRUSTED
    assert any(words in reason for reason in measured.reasons), measured.reasons
    assert measured.performance.speedup is None


def test_code_that_dies_while_timed_fails_with_the_reason() -> None:
    result = run(FakeDevice(dies=True)).performance
    assert result.verdict is Verdict.FAIL
    assert "SIGSEGV" in result.message


def test_a_forged_channel_is_no_reason_to_time_by_events() -> None:
    device = FakeDevice(dies=True, status=Status.UNTRUSTED)
    assert run(device).performance.verdict is Verdict.UNTRUSTED
    assert device.methods == ["graph"]


def test_every_call_of_every_sweep_of_the_submission_is_verified_but_those_within_a_batch() -> None:
    device = FakeDevice(10)
    (case,) = run(device).performance.cases
    for process in (1, 2):
        verified, wrong = case.samples[f"process {process}: verified, wrong"]
        stopped = case.samples[f"process {process}: stopped calls"]
        assert (verified, wrong) == (SLOTS * (2 * LOOKS[0] + 1 + 9) + sum(stopped), 0)


def test_nobody_knows_when_a_sweep_ends_before_its_last_call() -> None:
    device = FakeDevice(10)
    run(device)
    run(device)
    assert len(device.stops) == 4 * (1 + STOPS)  # at first one call is tried
    assert set(device.stops) <= set(range(1, SLOTS // 2 + 1))
    assert len(set(device.stops)) > 3
    assert device.stops.count(1) >= 4 * STOPS // 2
    assert len({places(log, "the first") for log in device.logs}) > 1


def test_an_interrupt_ends_the_measurement_instead_of_starting_another_runner() -> None:
    device = FakeDevice(dies=True)
    device.progress = lambda what: (
        setattr(device, "interrupted", "ended" in what) or FakeDevice.progress(device, what)
    )  # type: ignore[method-assign,func-returns-value]
    with pytest.raises(InterruptedError, match="the runner ended"):
        run(device)
    assert (device.opened, device.closed) == (2, 2)


def test_the_record_tells_the_condition_before_and_during() -> None:
    result = run(FakeDevice(10)).performance
    assert [seen.moment for seen in result.condition] == [
        "before timing",
        "at the end of process 1",
        "at the end of process 2",
    ]
    assert (result.message, result.info) == ("", [])
    assert run(FakeDevice(10, shown=False)).performance.condition == []


def test_a_hot_gpu_makes_a_failure_doubtful_and_only_informs_about_a_pass() -> None:
    hot = ("thermal slowdown by the driver",)
    said = "the GPU lowered its clocks: thermal slowdown by the driver, at 90 degrees"
    failed = run(FakeDevice(3, slowdowns=hot)).performance
    assert (failed.verdict, failed.message, failed.info) == (Verdict.FAIL, f"doubtful: {said}", [said])
    passed = run(FakeDevice(10, slowdowns=hot)).performance
    assert (passed.verdict, passed.message, passed.info) == (Verdict.PASS, "", [said])


@pytest.mark.parametrize(
    ("set_bytes", "l2", "count"), [(1 << 30, 50 << 20, 2), (64 << 20, 50 << 20, 4), (1024, 50 << 20, 128)]
)
def test_slots_outgrow_the_cache(set_bytes: int, l2: int, count: int) -> None:
    assert slots(set_bytes, l2) == count


def test_operations_become_calls_of_the_generic_kernels() -> None:
    places = {"x": 0, "y": 1, "s": 2}
    x = dense("x", 3, 4)
    add = step(zipped("y", "add", x, dense("s", 3, 1)), places)
    assert add.function == "baseline_zip"
    assert [kind for kind, _ in add.arguments] == ["int", "int", "ints", *["array", "ints"] * 3, "stream"]
    assert add.arguments[8] == ("ints", (1, 0))
    total = step(reduced("s", "sum", x, 1), places)
    assert total.function == "baseline_reduce"
    assert total.arguments[-3:] == (("int", 1), ("int", 4), ("stream", 0))
