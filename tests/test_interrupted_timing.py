"""Ctrl-C and SIGTERM while a kernel is timed: the runner ends at once, and its right cases stay."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from grader.assignments.assignment import load
from grader.devices.device import Status
from grader.devices.runner import RunnerError
from grader.devices.sharing import Sharing
from grader.judge.timing.others import Others
from grader.records.record import Record
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.assignments.rules import WorkLimits
    from grader.run.bench import Machine

REFERENCE = Path(__file__).parents[1] / "reference"
PATIENCE = 60.0


class Stuck:
    """A timed session that never answers, and fails whoever waits for it once it is closed."""

    def __init__(self) -> None:
        self.asked, self.closed = threading.Event(), threading.Event()

    def prepare(self, *_: object) -> None:
        self.asked.set()
        assert self.closed.wait(PATIENCE), "nobody closed the session"
        raise RunnerError(Status.LOST, "the session is closed")

    def close(self) -> None:
        self.closed.set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Clock:
    """A device with a clock that opens one session after the other."""

    l2_bytes = 50 << 20

    def __init__(self) -> None:
        self.identity, self.sharing = "clock", Sharing("clock")
        self.sessions: list[Stuck] = []

    def open_timed(self, *_: object) -> Stuck:
        self.sessions.append(Stuck())
        return self.sessions[-1]


class Bench(Bench):
    """The simulator, with a clock beside it."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        self.pytorch = Others(absent="PyTorch is not of interest here")

    def machine(self, device: str, sandbox: str, limits: WorkLimits) -> Machine:
        return replace(super().machine(device, sandbox, limits), gpu=self.clock)  # type: ignore[arg-type]


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM])
def interrupt_signal(request: pytest.FixtureRequest) -> Iterator[int]:
    """A signal as the commands take it, also where the tests were started with it ignored."""
    before = signal.signal(request.param, signal.default_int_handler)
    yield request.param
    signal.signal(request.param, before)


def test_an_interrupt_while_timing_closes_the_session_and_keeps_what_was_decided(
    interrupt_signal: int,
) -> None:
    clock = Clock()

    def interrupt() -> None:
        while not any(session.asked.is_set() for session in tuple(clock.sessions)):
            time.sleep(0.05)
        os.kill(os.getpid(), interrupt_signal)

    threading.Thread(target=interrupt, daemon=True).start()
    request = grading.GradingRequest(
        REFERENCE, load("llm_systems_3"), ("softmax_backward",), GradingOptions("sim"), seed=1
    )
    record = grading.grade(request, bench=Bench(clock))
    assert [session.closed.is_set() for session in clock.sessions] == [True, True]
    assert any(session.asked.is_set() for session in clock.sessions)  # the other prepares its case meanwhile
    assert (record.exit_code, record.error) == (130, "interrupted")
    assert record.problems[0].correctness.verdict is Verdict.PASS
    assert record.problems[0].performance.verdict is Verdict.NOT_MEASURED
    assert 0 < record.score.earned == record.score.decided
    assert Record.model_validate_json(record.model_dump_json(by_alias=True)) == record
