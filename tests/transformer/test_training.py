"""The speed of the model: turns of training steps, in real runners on the simulator and with stand-ins."""

from __future__ import annotations

import math
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np
import pytest
from first_assignment import ASSIGNMENT, PROBLEMS, program
from judging import libraries, sandbox
from wrong_models import REFERENCE, one

from grader.devices.device import Answer, Call, Memory, ScalarArgument, Status
from grader.devices.sim import Sim
from grader.judge.timing import steps, training
from grader.judge.timing.measure import PRECISE, UNTIL_CLEAR
from grader.judge.timing.statistics import Block, Goal
from grader.judge.timing.steps import Turns
from grader.judge.timing.training import Training, measure_training
from grader.records.verdict import Verdict
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from grader.devices.device import ModelProgram, Session
    from grader.judge.timing.measure import Effort
    from grader.problems.problem import Case

SMALL = {"vocabulary": 120, "width": 12, "heads": 3, "hidden": 20, "positions": 9, "layers": 1}
ON_THE_SIMULATOR = pytest.mark.skipif(not RUNTIME.is_file(), reason="the simulator is not built")


def small(seed: int) -> tuple[Case, ...]:
    (case,) = PROBLEMS["transformer"].timing_cases(seed)
    return (replace(case, name="small", sizes={**SMALL, "batch": 4, "length": 9, "steps": 1}),)


PROBLEM = replace(PROBLEMS["transformer"], timing_cases=small)


def on_the_simulator(text: str, folder: Path) -> Training:
    model = folder / "transformer.py"
    model.write_text(text)

    def opened(program: ModelProgram) -> Session:
        return Sim(sandbox()).open_model(program, libraries(), Memory.DEVICE)

    unfused = ASSIGNMENT.template / "transformer.py"
    return Training(PROBLEM, opened, program(model), program(unfused), Memory.DEVICE, 5, 60, lambda _: None)


@ON_THE_SIMULATOR
def test_the_reference_learns_as_the_unfused_model_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "MOST_STEPS", 4)
    measured = on_the_simulator((REFERENCE / "transformer.py").read_text(), tmp_path)
    with (
        closing(training.Pairs(measured, steps.EAGER)) as pairs,
        closing(pairs.next()) as pair,
    ):
        turns = training._turns(measured, Goal(0.01), steps.EAGER, pair, 0)
    assert len(turns.seconds("A")) == len(turns.seconds("B")) == 2 * len(turns.blocks)
    assert min(turns.seconds("A") + turns.seconds("B")) > 0
    assert turns.difference < 1e-3


@ON_THE_SIMULATOR
def test_a_model_that_leaves_the_kernels_out_of_the_timed_steps_is_found(tmp_path: Path) -> None:
    chosen = "softmax = attn_softmax if self.use_fused_kernel else unfused_softmax"
    edit = one("lying", chosen, "softmax = unfused_softmax", "")
    performance = measure_training(on_the_simulator(edit.text(), tmp_path), Goal(1.1)).performance
    assert performance.verdict is Verdict.FAIL
    assert "launch_attn_softmax was called 0 times" in performance.message


@dataclass
class FakeSession:
    """Answers with the losses that ``learn`` gives for the numbers of steps."""

    learn: Callable[[np.ndarray], np.ndarray]
    captured: Answer
    done: int = 0
    calls: list[Call] = field(default_factory=list)
    closed: bool = False

    def run(self, call: Call) -> Answer:
        self.calls.append(call)
        if call.entry_point == "capture":
            return self.captured
        steps = next(
            (int(a.value) for a in call.arguments if isinstance(a, ScalarArgument) and a.name == "steps"), 0
        )
        losses = self.learn(np.arange(self.done, self.done + steps)).astype(np.float32)
        self.done += steps
        return Answer(Status.RETURNED, arrays={"losses": losses})

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def learning(steps: np.ndarray) -> np.ndarray:
    return 5 * np.exp(-steps / 200) + 4


@dataclass
class FakeDevice:
    """Opens runners of the unfused model and of the student's."""

    student: Callable[[np.ndarray], np.ndarray]
    captured: Answer = field(default_factory=lambda: Answer(Status.RETURNED))  # of the student's file
    unfused: list[FakeSession] = field(default_factory=list)
    fused: list[FakeSession] = field(default_factory=list)
    held: bool = False
    turns: int = 0

    @contextmanager
    def alone(self) -> Iterator[None]:
        assert not self.held
        self.held, self.turns = True, self.turns + 1
        yield
        self.held = False

    def open(self, model: ModelProgram) -> FakeSession:
        if model.file.name == "student.py":
            self.fused.append(FakeSession(self.student, self.captured))
            return self.fused[-1]
        self.unfused.append(FakeSession(learning, Answer(Status.RETURNED)))
        return self.unfused[-1]


def trained(device: FakeDevice, tmp_path: Path, effort: Effort = UNTIL_CLEAR) -> Training:
    files = program(tmp_path / "student.py"), program(tmp_path / "unfused.py")
    return Training(
        *(PROBLEM, device.open, *files, Memory.DEVICE, 5, 60, lambda _: None, device.alone, effort)
    )


def measured(device: FakeDevice, tmp_path: Path, effort: Effort = UNTIL_CLEAR) -> training.Measured:
    return measure_training(trained(device, tmp_path, effort), Goal(1.1))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock by which each turn of the submission is so many times as fast as one of the unfused model."""

    def is_faster(speedup: float) -> None:
        def seconds(arm: training._Arm, count: int) -> float:
            real(arm, count)
            noise = 1 + 1e-3 * np.random.default_rng(len(arm.losses)).uniform(-1, 1)
            return 6e-3 * float(noise) / (speedup if arm._fused else 1)

        real = training._Arm.seconds
        monkeypatch.setattr(training._Arm, "seconds", seconds)

    return is_faster


def test_a_pair_of_runners_has_the_gpu_alone_once_both_have_begun(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(1.2)
    device = FakeDevice(learning)
    measured(device, tmp_path)
    assert device.turns == len(device.fused) == len(device.unfused) == 2
    assert not device.held
    assert all(session.closed for session in (*device.fused, *device.unfused))


@pytest.mark.parametrize(
    ("speedup", "verdict", "blocks"),
    [(1.2, Verdict.PASS, [6, 6]), (0.9, Verdict.FAIL, [6, 6]), (1.1, Verdict.AMBIGUOUS, [20, 20, 40, 80])],
)
def test_a_process_ends_as_soon_as_its_verdict_is_clear(
    speedup: float, verdict: Verdict, blocks: list[int], tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(speedup)
    found = measured(FakeDevice(learning), tmp_path).performance
    (case,) = found.cases
    assert found.verdict is verdict
    assert found.speedup == pytest.approx(speedup, rel=1e-3)
    assert case.method == steps.CAPTURED
    assert [len(turns.blocks) for turns in steps.from_samples("", case.samples)] == blocks
    assert steps.recomputed(found) == found


def test_what_has_begun_ahead_is_measured_and_no_other_runner_starts(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(1.2)
    device = FakeDevice(learning)
    given = trained(device, tmp_path)
    begun = training.Pairs(given)
    assert measure_training(given, Goal(1.1), begun).performance.verdict is Verdict.PASS
    assert len(device.fused) == len(device.unfused) == 2
    assert all(session.closed for session in (*device.fused, *device.unfused))


def test_a_precise_measurement_looks_once_in_each_process(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(1.2)
    (case,) = measured(FakeDevice(learning), tmp_path, effort=PRECISE).performance.cases
    assert [len(turns.blocks) for turns in steps.from_samples("", case.samples)] == [20, 20]


def test_where_the_student_s_step_can_be_no_graph_fresh_runners_train_operation_by_operation(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    clock(1.2)
    device = FakeDevice(learning, Answer(Status.RAISED, "operation not permitted when stream is capturing"))
    (case,) = measured(device, tmp_path).performance.cases
    assert case.method == steps.EAGER
    assert all(session.closed for session in (*device.fused, *device.unfused))
    tried = [any(call.entry_point == "capture" for call in session.calls) for session in device.fused]
    trained = [session.done > 20 for session in device.fused]
    assert any(tried)
    assert trained.count(True) == 2
    assert not any(one and other for one, other in zip(tried, trained, strict=True))


def test_both_runners_train_alike_and_only_the_student_s_is_asked_for_launches(tmp_path: Path) -> None:
    device = FakeDevice(learning)
    found = measured(device, tmp_path)
    unfused, fused = device.unfused[0], device.fused[0]
    assert unfused.done == fused.done > 8
    assert not any(call.needs for call in unfused.calls)
    turns = [call for call in fused.calls if call.entry_point == "steps"]
    assert {needed.entry_point for needed, _ in turns[0].needs} == {
        *("launch_attn_softmax", "launch_attn_softmax_bw", "launch_layernorm", "launch_layernorm_bw")
    }
    assert [times for _, times in turns[0].needs] == [5, 5, 15, 15]
    assert found.performance.speedup is not None


@pytest.mark.parametrize("student", [lambda steps: 0 * steps + 9, lambda steps: learning(steps) * np.nan])
def test_a_model_that_does_not_learn_earns_nothing(
    student: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    found = measured(FakeDevice(student), tmp_path)
    assert found.performance.verdict is Verdict.FAIL
    assert "does not learn as the unfused one does" in found.performance.message
    assert found.performance.speedup is None


@pytest.mark.parametrize(
    ("speedup", "verdict"), [(1.3, Verdict.PASS), (1.02, Verdict.FAIL), (1.1, Verdict.AMBIGUOUS)]
)
def test_the_interval_decides(speedup: float, verdict: Verdict) -> None:
    noise = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 1.0)
    blocks = tuple(Block("ABBA", (noisy, 1 / speedup, noisy / speedup, 1.0)) for noisy in noise)
    assert steps.verdict(Turns(blocks, 0.0), 1.1) is verdict


def test_blocks_compare_the_arms_and_the_baseline_with_itself() -> None:
    turns = Turns((Block("ABBA", (2.0, 1.0, 1.0, 4.0)), Block("BAAB", (1.0, 3.0, 3.0, 1.0))), 0.0)
    assert turns.values() == pytest.approx([math.log(8) / 2, math.log(3)])
    assert turns.same() == pytest.approx([math.log(0.5), 0.0])
    assert turns.seconds("B") == [1.0, 1.0, 1.0, 1.0]
