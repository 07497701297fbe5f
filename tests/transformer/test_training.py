"""The speed of the model: turns of training steps, in real runners on the simulator and with stand-ins."""

from __future__ import annotations

import math
from contextlib import contextmanager
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
from grader.judge.timing.statistics import Block
from grader.judge.timing.steps import Turns
from grader.judge.timing.training import Training, measure_training
from grader.records.verdict import Verdict
from grader.simulator.driver import RUNTIME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from grader.devices.device import ModelProgram, Session
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
    return Training(
        PROBLEM, opened, program(model), program(unfused), Memory.DEVICE, 5, 60, lambda _: None, blocks=2
    )


@ON_THE_SIMULATOR
def test_the_reference_learns_as_the_unfused_model_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "MOST_STEPS", 4)
    turns = training._turns(on_the_simulator((REFERENCE / "transformer.py").read_text(), tmp_path))
    assert len(turns.seconds("A")) == len(turns.seconds("B")) == 4
    assert min(turns.seconds("A") + turns.seconds("B")) > 0
    assert turns.difference < 1e-3


@ON_THE_SIMULATOR
def test_a_model_that_leaves_the_kernels_out_of_the_timed_steps_is_found(tmp_path: Path) -> None:
    chosen = "softmax = attn_softmax if self.use_fused_kernel else unfused_softmax"
    edit = one("lying", chosen, "softmax = unfused_softmax", "")
    performance = measure_training(on_the_simulator(edit.text(), tmp_path), target=1.1).performance
    assert performance.verdict is Verdict.FAIL
    assert "launch_attn_softmax was called 0 times" in performance.message


@dataclass
class FakeSession:
    """Answers with the losses that ``learn`` gives for the numbers of steps."""

    learn: Callable[[np.ndarray], np.ndarray]
    done: int = 0
    calls: list[Call] = field(default_factory=list)

    def run(self, call: Call) -> Answer:
        self.calls.append(call)
        steps = next(
            (int(a.value) for a in call.arguments if isinstance(a, ScalarArgument) and a.name == "steps"), 0
        )
        losses = self.learn(np.arange(self.done, self.done + steps)).astype(np.float32)
        self.done += steps
        return Answer(Status.RETURNED, arrays={"losses": losses})

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def learning(steps: np.ndarray) -> np.ndarray:
    return 5 * np.exp(-steps / 200) + 4


@dataclass
class FakeDevice:
    """Opens the baseline and the submission in turn."""

    student: Callable[[np.ndarray], np.ndarray]
    opened: list[FakeSession] = field(default_factory=list)
    held: bool = False
    turns: int = 0

    @contextmanager
    def alone(self) -> Iterator[None]:
        assert not self.held
        self.held, self.turns = True, self.turns + 1
        yield
        self.held = False

    def open(self, model: ModelProgram) -> FakeSession:
        assert not self.held
        self.opened.append(FakeSession(self.student if model.file.name == "student.py" else learning))
        return self.opened[-1]


def measured(
    student: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> tuple[FakeDevice, training.Measured]:
    device = FakeDevice(student)
    files = program(tmp_path / "student.py"), program(tmp_path / "unfused.py")
    given = Training(PROBLEM, device.open, *files, Memory.DEVICE, 5, 60, lambda _: None, 8, device.alone)
    return device, measure_training(given, target=1.1)


def test_a_pair_of_runners_has_the_gpu_alone_once_both_have_begun(tmp_path: Path) -> None:
    device, _ = measured(learning, tmp_path)
    assert device.turns == len(device.opened) / 2 > 1
    assert not device.held


def test_both_runners_train_alike_and_only_the_student_s_is_asked_for_launches(tmp_path: Path) -> None:
    device, found = measured(learning, tmp_path)
    unfused, fused = device.opened[:2]
    assert unfused.done == fused.done > 8
    assert not any(call.needs for call in unfused.calls)
    turns = [call for call in fused.calls if call.entry_point == "steps"]
    assert {needed.entry_point for needed, _ in turns[0].needs} == {
        *("launch_attn_softmax", "launch_attn_softmax_bw", "launch_layernorm", "launch_layernorm_bw")
    }
    assert [times for _, times in turns[0].needs] == [5, 5, 15, 15]
    assert found.performance.speedup is not None
    assert len(device.opened) % 2 == 0


@pytest.mark.parametrize("student", [lambda steps: 0 * steps + 9, lambda steps: learning(steps) * np.nan])
def test_a_model_that_does_not_learn_earns_nothing(
    student: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    _, found = measured(student, tmp_path)
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
