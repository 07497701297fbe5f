"""Measures how much faster the model trains with the student's kernels than the given unfused model.

The unfused model comes from the template and has its own runner, in which no line of the submission runs. The
two runners train in turn (A B B A or B A A B) on the same batches from the same weights, some steps at a
time. The judge's clock measures them: a turn ends when its losses have arrived. The losses of both models
must agree.
"""

from __future__ import annotations

import math
import time
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import ArrayArgument, Call, LoadError, ScalarArgument, Status
from grader.judge.correctness.calls import named_arguments, needed_calls
from grader.judge.timing import steps
from grader.judge.timing.measure import Measured
from grader.judge.timing.statistics import ORDERS, Block, conclude
from grader.judge.timing.steps import Turns
from grader.records.errors import DeviceError
from grader.records.record import PerformanceResult
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from grader.devices.device import Answer, Memory, ModelProgram, Session
    from grader.problems.problem import ModelProblem

BLOCKS = 12  # per process
TURN_SECONDS = 0.25
MOST_STEPS = 50  # per turn
WARM_STEPS = 5

_ENDS = {Status.UNTRUSTED: Verdict.UNTRUSTED, Status.LOST: Verdict.INFRA_ERROR}


@dataclass(frozen=True)
class Training:
    """What does not change between the processes of one measurement.

    Attributes:
        problem: the model problem, whose only timing case is trained.
        open: starts a fresh runner for a program, with the student's kernels.
        fused: the program with the student's file.
        unfused: the program with the template's file.
        memory: which pointers the kernels take.
        seed: seed of the weights and of the words.
        seconds: time-out of a turn.
        progress: called with a text on what happens next.
        blocks: number of blocks per process, of four turns each.
        alone: makes a context in which nobody else uses the GPU.
    """

    problem: ModelProblem
    open: Callable[[ModelProgram], Session]
    fused: ModelProgram
    unfused: ModelProgram
    memory: Memory
    seed: int
    seconds: float
    progress: Callable[[str], None]
    blocks: int = BLOCKS
    alone: Callable[[], AbstractContextManager[object]] = nullcontext


class _EndedError(Exception):
    """A runner ended, or returned no losses."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message or str(answer.status))
        self.verdict = _ENDS.get(answer.status, Verdict.FAIL)


def measure_training(training: Training, target: float) -> Measured:
    """Train both models in fresh processes until two pairs of processes agree."""
    pairs: list[Turns] = []
    verdicts: list[Verdict] = []
    while conclude(verdicts) is None:
        training.progress(f"{training.problem.id}: training both ways, process {len(pairs) + 1}")
        try:
            pairs.append(_turns(training))
        except _EndedError as error:
            return _unmeasured(error.verdict, target, str(error))
        except (DeviceError, LoadError) as error:
            return _unmeasured(Verdict.INFRA_ERROR, target, str(error))
        verdicts.append(steps.verdict(pairs[-1], target))
    (case,) = training.problem.timing_cases(training.seed)
    return Measured(steps.assessed(case.name, pairs, target))


def _unmeasured(verdict: Verdict, target: float, message: str) -> Measured:
    result = PerformanceResult(verdict=verdict, target=target, message=f"timing ended early: {message}")
    return Measured(result, (message,) if verdict is Verdict.UNTRUSTED else ())


class _Arm:
    """One runner that trains."""

    def __init__(self, training: Training, session: Session, *, fused: bool) -> None:
        self._training = training
        self._session = session
        (case,) = training.problem.timing_cases(training.seed)
        inputs = named_arguments(training.problem.inputs(case))
        begin = Call(case.function, (*inputs, ScalarArgument("fused", "bool", fused)), training.seconds)
        self._needs = needed_calls(training.problem, case, training.seconds, training.memory) if fused else ()
        self._asked(begin)
        self.losses: list[float] = []

    def seconds(self, steps: int) -> float:
        """Seconds per step of a turn, by the judge's clock."""
        losses = ArrayArgument("losses", "float32", (steps,), None)
        needs = tuple((call, times * steps) for call, times in self._needs)
        call = Call(
            "steps", (losses, ScalarArgument("steps", "int", steps)), self._training.seconds, needs=needs
        )
        begin = time.perf_counter()
        answer = self._asked(call)
        seconds = time.perf_counter() - begin
        self.losses += np.asarray(answer.arrays["losses"], np.float64).tolist()
        return seconds / steps

    def _asked(self, call: Call) -> Answer:
        answer = self._session.run(call)
        if not answer.usable or answer.faults:
            message = "; ".join(answer.faults)
            raise _EndedError(replace(answer, message=message) if message else answer)
        return answer


def _turns(training: Training) -> Turns:
    """All blocks of one pair of fresh runners."""
    with ExitStack() as stack:
        programs = (training.unfused, training.fused)
        sessions = [stack.enter_context(training.open(program)) for program in programs]
        stack.enter_context(training.alone())
        arms = {
            name: _Arm(training, session, fused=name == "B")
            for name, session in zip("AB", sessions, strict=True)
        }
        warm = [arm.seconds(WARM_STEPS) for arm in arms.values() for _ in range(2)]
        steps = max(1, min(MOST_STEPS, math.ceil(TURN_SECONDS / min(warm))))
        blocks = []
        for _ in range(training.blocks):
            order = SystemRandom().choice(ORDERS)
            first, second, third, fourth = (arms[name].seconds(steps) for name in order)
            blocks.append(Block(order, (first, second, third, fourth)))
    unfused, fused = (np.asarray(arm.losses) for arm in arms.values())
    return Turns(tuple(blocks), _difference(unfused, fused))


def _difference(unfused: NDArray[np.float64], fused: NDArray[np.float64]) -> float:
    """The largest difference of the losses in a tenth of the steps, relative to the first loss; 1 for NaN."""
    if not (np.isfinite(unfused).all() and np.isfinite(fused).all()):
        return 1.0
    parts = zip(np.array_split(unfused, 10), np.array_split(fused, 10), strict=True)
    return max(abs(float(np.median(a) - np.median(b))) for a, b in parts) / float(unfused[0])
