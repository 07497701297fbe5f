"""Measures how much faster the model trains with the student's kernels than the given unfused model.

The unfused model comes from the template and has its own runner, in which no line of the submission runs. The
two runners train in turn (A B B A or B A A B) on the same batches from the same weights, some steps at a
time. The judge's clock measures them: a turn ends when its losses have arrived. The losses of both models
must agree.

A step is a CUDA graph, recorded after some steps that were not. So the GPU never waits for Python, whose
time for a step varies by a factor of two. Where the student's step can be no graph, because it copies or
waits, both models train operation by operation.
"""

from __future__ import annotations

import math
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from random import SystemRandom
from typing import TYPE_CHECKING

import numpy as np

from grader.devices.device import ArrayArgument, Call, LoadError, ScalarArgument, Status
from grader.judge.correctness.calls import named_arguments, needed_calls
from grader.judge.timing import steps
from grader.judge.timing.measure import AGREEING, UNTIL_CLEAR, Measured, unmeasured
from grader.judge.timing.statistics import ORDERS, Block, clear, conclude
from grader.judge.timing.steps import Turns
from grader.records.errors import DeviceError
from grader.records.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from grader.devices.device import Answer, Memory, ModelProgram, Session
    from grader.judge.timing.measure import Effort
    from grader.judge.timing.statistics import Goal
    from grader.problems.problem import ModelProblem

TURN_SECONDS = {steps.CAPTURED: 0.05, steps.EAGER: 0.25}  # a round trip is a thousandth of the shorter one
MOST_STEPS = 50  # per turn
MOST_BLOCKS = {steps.CAPTURED: math.inf, steps.EAGER: 20}  # per process; one of eager steps takes a second
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
        alone: makes a context in which nobody else uses the GPU.
        effort: after how many blocks, of four turns each, a process may end.
    """

    problem: ModelProblem
    open: Callable[[ModelProgram], Session]
    fused: ModelProgram
    unfused: ModelProgram
    memory: Memory
    seed: int
    seconds: float
    progress: Callable[[str], None]
    alone: Callable[[], AbstractContextManager[object]] = nullcontext
    effort: Effort = UNTIL_CLEAR


class _EndedError(Exception):
    """A runner ended, or returned no losses."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message or str(answer.status))
        self.verdict = _ENDS.get(answer.status, Verdict.FAIL)


class _NotCapturedError(Exception):
    """The student's step can be no graph; what was tried may have left its runner unusable."""


def measure_training(training: Training, goal: Goal, begun: Pairs | None = None) -> Measured:
    """Train both models in fresh processes, the first of which may have ``begun``, until two pairs agree.

    Those that have begun record their steps as graphs.
    """
    try:
        return _measured(training, goal, steps.CAPTURED, begun or Pairs(training))
    except _NotCapturedError:
        return _measured(training, goal, steps.EAGER, Pairs(training, steps.EAGER))


def _measured(training: Training, goal: Goal, method: str, runners: Pairs) -> Measured:
    pairs: list[Turns] = []
    with closing(runners):
        while conclude([steps.verdict(turns, goal.target) for turns in pairs]) is None:
            training.progress(f"{training.problem.id}: training both ways, process {len(pairs) + 1}")
            try:
                with closing(runners.next()) as pair:
                    pairs.append(_turns(training, goal, method, pair, len(pairs)))
            except _EndedError as error:
                return unmeasured(error.verdict, goal.target, str(error))
            except (DeviceError, LoadError) as error:
                return unmeasured(Verdict.INFRA_ERROR, goal.target, str(error))
    (case,) = training.problem.timing_cases(training.seed)
    return Measured(steps.assessed(case.name, method, pairs, goal.target))


class _Arm:
    """One runner that trains; the model has made its first steps, and further ones are a graph if asked for.

    Raises:
        _NotCapturedError: the student's can be none.
    """

    def __init__(self, training: Training, method: str, *, fused: bool) -> None:
        self._training = training
        self._fused = fused
        (case,) = training.problem.timing_cases(training.seed)
        inputs = named_arguments(training.problem.inputs(case))
        begin = Call(case.function, (*inputs, ScalarArgument("fused", "bool", fused)), training.seconds)
        self._needs = needed_calls(training.problem, case, training.seconds, training.memory) if fused else ()
        self._session = training.open(training.fused if fused else training.unfused)
        self.losses: list[float] = []
        try:
            self._asked(begin)
            self.seconds(WARM_STEPS)  # this loads libraries, and gives the optimizer its state
            if method == steps.CAPTURED:
                self._capture()
        except (_EndedError, _NotCapturedError):
            self.close()
            raise

    def _capture(self) -> None:
        answer = self._session.run(Call("capture", (), self._training.seconds))
        if not answer.usable:
            raise _NotCapturedError(answer.message) if self._fused else _EndedError(answer)

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

    def close(self) -> None:
        """End the runner."""
        self._session.close()

    def _asked(self, call: Call) -> Answer:
        answer = self._session.run(call)
        if not answer.usable or answer.faults:
            message = "; ".join(answer.faults)
            raise _EndedError(replace(answer, message=message) if message else answer)
        return answer


@dataclass(frozen=True)
class _Pair:
    """The runners of one process that is measured, unfused (A) and fused (B)."""

    arms: Mapping[str, _Arm]

    def close(self) -> None:
        """End both."""
        for arm in self.arms.values():
            arm.close()


class Pairs:
    """Fresh pairs of runners, of which those that are certainly needed begin together, at once.

    They make their first steps then, and record a graph where ``method`` says so: all that takes time before
    the GPU has to be theirs alone.
    """

    def __init__(self, training: Training, method: str = steps.CAPTURED) -> None:
        self._training, self._method = training, method
        self._pool = ThreadPoolExecutor(2 * AGREEING)
        self._opening = [self._open() for _ in range(AGREEING)]

    def _open(self) -> Sequence[Future[_Arm]]:
        return [self._pool.submit(_Arm, self._training, self._method, fused=fused) for fused in (False, True)]

    def next(self) -> _Pair:
        """A pair that has begun.

        Raises:
            _EndedError, DeviceError, LoadError: one of them did not begin.
            _NotCapturedError: the student's step can be no graph.
        """
        if not self._opening:
            self._opening.append(self._open())
        unfused, fused = self._opening[0]
        student = fused.result()  # what is wrong with theirs is told first
        pair = _Pair({"A": unfused.result(), "B": student})
        del self._opening[0]
        return pair

    def close(self) -> None:
        """End those that nobody needed."""
        for opening in self._opening:
            for arm in opening:
                if not arm.cancel() and arm.exception() is None:
                    arm.result().close()
        self._pool.shutdown()


def _turns(training: Training, goal: Goal, method: str, pair: _Pair, index: int) -> Turns:
    """All blocks of one pair of fresh runners."""
    arms = pair.arms
    looks = sorted({int(min(look, MOST_BLOCKS[method])) for look in training.effort.looks[index]})
    sequential, blocks, looked = training.effort.sequential, list[Block](), list[int]()
    with training.alone():
        warm = [arm.seconds(WARM_STEPS) for arm in arms.values() for _ in range(2)]
        count = max(1, min(MOST_STEPS, math.ceil(TURN_SECONDS[method] / min(warm))))
        for look in looks:
            while len(blocks) < look:
                order = SystemRandom().choice(ORDERS)
                first, second, third, fourth = (arms[name].seconds(count) for name in order)
                blocks.append(Block(order, (first, second, third, fourth)))
            looked += [look] if sequential else []
            turns = Turns(tuple(blocks), 0.0, tuple(looked))
            if sequential and clear(turns.speedup, turns.floor, goal):
                break
    unfused, fused = (np.asarray(arm.losses) for arm in arms.values())
    return replace(turns, difference=_difference(unfused, fused))


def _difference(unfused: NDArray[np.float64], fused: NDArray[np.float64]) -> float:
    """The largest difference of the losses in a tenth of the steps, relative to the first loss; 1 for NaN."""
    if not (np.isfinite(unfused).all() and np.isfinite(fused).all()):
        return 1.0
    parts = zip(np.array_split(unfused, 10), np.array_split(fused, 10), strict=True)
    return max(abs(float(np.median(a) - np.median(b))) for a, b in parts) / float(unfused[0])
