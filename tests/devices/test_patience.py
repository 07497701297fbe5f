"""What counts against a submission is what it uses, and never what a busy machine takes from it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from grader.devices import patience
from grader.devices.device import Status
from grader.devices.patience import Allowance, Patience
from grader.sandbox.sandbox import Usage


@dataclass
class Fake:
    """A clock, and a job that works and sleeps by it."""

    now: float = 1000.0
    processor: float = 7.0  # what it used before the call
    asleep: float = 3.0
    working: bool = False  # a simulator, for it

    def usage(self) -> Usage:
        return Usage(self.processor, self.asleep)

    def passes(self, seconds: float, processor: float = 0.0, asleep: float = 0.0) -> None:
        self.now += seconds
        self.processor += processor
        self.asleep += asleep


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(patience.time, "monotonic", lambda: fake.now)
    return fake


def waiting(job: Fake, *, on_gpu: bool = False) -> Patience:
    return Patience(job.usage, Allowance(10.0, on_gpu=on_gpu), lambda: job.working)


def test_processor_time_ends_it_and_wall_time_does_not(job: Fake) -> None:
    wait = waiting(job)
    for _ in range(100):
        job.passes(5, processor=0.09)
        assert not wait.over()
    for _ in range(20):
        job.passes(5, processor=0.09)
    assert wait.over()
    assert wait.status is Status.TIMEOUT
    assert "more than 10 s of processor time" in wait.message


def test_sleep_counts_only_while_nothing_works_for_it(job: Fake) -> None:
    wait = waiting(job)
    job.working = True
    for _ in range(100):
        job.passes(1, asleep=1)
        assert not wait.over()
    job.working = False
    for _ in range(6):
        job.passes(1, asleep=1)
    assert wait.over()
    assert wait.status is Status.TIMEOUT
    assert "slept for 5 s" in wait.message


def test_on_a_gpu_work_and_sleep_count_together(job: Fake) -> None:
    wait = waiting(job, on_gpu=True)
    for _ in range(4):
        job.passes(2, processor=1, asleep=1)
        assert not wait.over()
    for _ in range(2):
        job.passes(2, processor=1, asleep=1)
    assert wait.over()
    assert "10 s of device time" in wait.message


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_machine_without_free_processors_is_at_fault_and_only_in_the_end(
    job: Fake, *, on_gpu: bool
) -> None:
    wait = waiting(job, on_gpu=on_gpu)
    while job.now < 1000 + patience.BUSY_SECONDS - 60:
        job.passes(30, processor=0.1)
        assert not wait.over()
    job.passes(120, processor=0.1)
    assert wait.over()
    assert wait.status is Status.LOST
    assert "the machine was too busy" in wait.message


def test_the_end_stays_what_it_was(job: Fake) -> None:
    wait = waiting(job)
    job.passes(20, processor=20)
    assert wait.over()
    job.passes(patience.BUSY_SECONDS)
    assert wait.over()
    assert wait.status is Status.TIMEOUT
