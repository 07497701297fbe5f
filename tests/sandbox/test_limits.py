"""Limits of time count what a job does, work or sleep, in every backend and beside any other load."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.sandbox.keeper import TICK_SECONDS, Meter, at_the_guard, kills_of_machine, out_of_memory
from grader.sandbox.live import Live
from grader.sandbox.process import ProcessSandbox
from grader.sandbox.sandbox import Ended, Job, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.sandbox.sandbox import Outcome, Sandbox

PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
WORK = (
    "import os, signal, time\n"
    "def work(seconds):\n"
    "    end = time.process_time() + seconds\n"
    "    while time.process_time() < end: pass\n"
)
GUARD = 300  # no test comes near it
ASLEEP = "asleep for 0.5 s, waiting for something that does not happen"


def _job(sandbox: Sandbox, script: str, **limits: float) -> Job:
    own = sandbox.image is None
    program, inputs = (PYTHON, (Path(sys.base_prefix),)) if own else (sandbox.image.python, ())  # type: ignore[union-attr]
    settings = {"wall_seconds": GUARD} | limits
    argv = (str(program), "-I", "-S", "-c", WORK + script)
    return Job(argv, Limits(**settings), inputs=inputs)  # type: ignore[arg-type]


def _run(sandbox: Sandbox, script: str, **limits: float) -> Outcome:
    return sandbox.run(_job(sandbox, script, **limits))


V1 = {"memory.oom_control": "under_oom 0\noom_kill 1\n", "memory.limit_in_bytes": "104857600\n"}


@contextmanager
def _busy_machine(sandbox: Sandbox, times: int) -> Iterator[None]:
    """So many processes beside a job, per processor that it may use, that never stop working.

    Each has a session of its own, or the kernel might share its processors between our session and the job's.
    A job that this process starts stays on one processor, as it does; an engine's containers run on any.
    """
    every = os.sched_getaffinity(0)
    used = every if sandbox.image is not None else {min(every)}
    os.sched_setaffinity(0, used)
    loop = ["/bin/sh", "-c", "while :; do :; done"]
    busy = [subprocess.Popen(loop, start_new_session=True) for _ in range(times * len(used))]
    try:
        yield
    finally:
        os.sched_setaffinity(0, every)
        for process in busy:
            process.kill()
            process.wait()


def test_work_ends_by_processor_time_and_not_before(sandbox: Sandbox) -> None:
    outcome = _run(sandbox, "work(0.4); print('here', flush=True); work(60)", processor_seconds=0.8)
    assert (outcome.ended, outcome.stdout) == (Ended.TIMEOUT, b"here\n")
    assert outcome.note == "more than 0.8 s of processor time"
    assert outcome.processor_seconds > 0.8


def test_what_stays_within_its_limits_ends_by_itself(sandbox: Sandbox) -> None:
    outcome = _run(sandbox, "work(0.3); time.sleep(0.3)", processor_seconds=20, asleep_seconds=20)
    assert (outcome.ended, outcome.code) == (Ended.EXITED, 0)
    assert 0.3 <= outcome.processor_seconds < 20


def test_children_that_work_at_once_count_together(sandbox: Sandbox) -> None:
    script = "for _ in range(4):\n    if os.fork() == 0: work(0.5); time.sleep(60)\ntime.sleep(60)"
    outcome = _run(sandbox, script, processor_seconds=1.6)
    assert outcome.note == "more than 1.6 s of processor time"


def test_children_that_ended_count(sandbox: Sandbox) -> None:
    script = (
        "for _ in range(80):\n"
        "    if os.fork() == 0: work(0.02); os._exit(0)\n"
        "    os.wait()\n"
        "print('no'); time.sleep(60)"
    )
    outcome = _run(sandbox, script, processor_seconds=1.0)
    assert (outcome.note, outcome.stdout) == ("more than 1 s of processor time", b"")


def test_children_for_which_nobody_waits_count(sandbox: Sandbox) -> None:
    script = (
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
        "for _ in range(6):\n"
        "    if os.fork() == 0: work(0.3); os._exit(0)\n"
        "    time.sleep(0.4)\n"
        "time.sleep(60)"
    )
    outcome = _run(sandbox, script, processor_seconds=1.0)
    assert outcome.note == "more than 1 s of processor time"


def test_who_waits_for_a_child_that_works_is_not_asleep(sandbox: Sandbox) -> None:
    script = "if os.fork() == 0: work(60)\nos.wait()"
    outcome = _run(sandbox, script, processor_seconds=1.2, asleep_seconds=0.5)
    assert outcome.note == "more than 1.2 s of processor time"


def test_short_rests_of_who_works_are_no_sleep(sandbox: Sandbox) -> None:
    outcome = _run(sandbox, "for _ in range(40): work(0.03); time.sleep(0.03)", asleep_seconds=0.3)
    assert (outcome.ended, outcome.code, outcome.note) == (Ended.EXITED, 0, "")


@pytest.mark.parametrize(
    "script",
    [
        "time.sleep(1000)",
        "while True: time.sleep(0.3); work(0.001)",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "import threading; threading.Thread(target=time.sleep, args=[99]).start(); os.fork(); time.sleep(99)",
    ],
)
def test_sleep_ends(sandbox: Sandbox, script: str) -> None:
    outcome = _run(sandbox, script, processor_seconds=20, asleep_seconds=0.5)
    assert (outcome.ended, outcome.note) == (Ended.TIMEOUT, ASLEEP)


def test_usage_can_be_read_during_and_after_the_job(sandbox: Sandbox) -> None:
    running = sandbox.start(_job(sandbox, "work(0.3); print(1, flush=True); input(); work(0.3)"))
    running.stdout.readline()
    while running.usage().asleep_seconds < 0.2:
        assert running.wait(0.02) is None
    before = running.usage()
    assert before.processor_seconds >= 0.25
    running.stdin.write(b"\n")
    running.stdin.flush()
    outcome = running.wait(60)
    assert outcome is not None
    assert running.usage().processor_seconds == outcome.processor_seconds >= 0.6
    assert running.usage().asleep_seconds >= before.asleep_seconds


def test_the_job_does_not_hold_the_memory_of_its_usage(sandbox: Sandbox) -> None:
    outcome = _run(
        sandbox, "print([os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd')[:-1]])"
    )
    assert outcome.code == 0
    assert b"usage" not in outcome.stdout


def test_a_job_that_waits_for_a_processor_is_neither_asleep_nor_over_its_time(sandbox: Sandbox) -> None:
    with _busy_machine(sandbox, 8):
        outcome = _run(sandbox, "work(0.25)", processor_seconds=2.0, asleep_seconds=0.4)
    assert (outcome.ended, outcome.code, outcome.note) == (Ended.EXITED, 0, "")


def test_a_machine_that_is_too_busy_is_not_the_jobs_fault(sandbox: Sandbox) -> None:
    script = "os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0)); work(60)"
    with _busy_machine(sandbox, 8):
        outcome = _run(sandbox, script, wall_seconds=2, processor_seconds=100, asleep_seconds=100)
    assert outcome.ended is Ended.BUSY
    assert outcome.note.startswith("the machine was too busy: 2 s passed, of which the job got ")


def test_a_guard_that_is_met_by_sleep_is_the_jobs_fault() -> None:
    outcome = _run(
        ProcessSandbox(), "while True: time.sleep(0.02); work(0.001)", wall_seconds=1, processor_seconds=9
    )
    assert outcome.ended is Ended.TIMEOUT
    assert outcome.note.startswith("more than 1 s of time, for ")


@pytest.mark.parametrize(
    ("worked", "slept", "napped", "bounded", "how"),
    [
        (1.0, 1.0, 1.0, True, "busy"),
        (6.0, 0.0, 0.0, True, "timeout"),
        (0.0, 6.0, 0.0, True, "timeout"),
        (2.0, 2.0, 2.0, True, "timeout"),
        (0.0, 0.0, 0.0, False, "timeout"),
    ],
)
def test_whose_fault_the_guard_is(
    worked: float, slept: float, napped: float, bounded: bool, how: str
) -> None:
    page = os.memfd_create("usage")
    os.truncate(page, 16)
    meter = Meter(page)
    os.close(page)
    meter.worked, meter.slept, meter.napped = worked, slept, napped
    limit = 100.0 if bounded else None
    assert (
        at_the_guard({"wall_seconds": 10, "processor_seconds": limit, "asleep_seconds": None}, meter)[0]
        == how
    )


def test_a_keeper_that_had_to_wait_adds_no_more_sleep() -> None:
    page = os.memfd_create("usage")
    os.truncate(page, 16)
    meter = Meter(page)
    os.close(page)
    with subprocess.Popen(["/bin/sleep", "60"]) as process:
        for _ in range(3):
            time.sleep(0.3)
            meter.sample([process.pid])
        process.kill()
    assert 0 < meter.slept <= 3 * TICK_SECONDS


def test_a_keeper_that_is_long_overdue_is_no_crash_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.sandbox.live._LATE_SECONDS", 0.0)
    running = ProcessSandbox().start(Job(("/bin/sleep", "5"), Limits(wall_seconds=0.5)))
    assert isinstance(running, Live)
    os.kill(running._keeper._process.pid, signal.SIGSTOP)  # type: ignore[attr-defined]
    monkeypatch.setattr("grader.sandbox.live._GRACE_SECONDS", 0.1)
    outcome = running.wait(60)
    assert outcome is not None
    assert outcome.ended is Ended.LOST
    assert running.kill() is outcome
    assert not any(group.exists() for group in running._command.groups)


@pytest.mark.parametrize(
    ("files", "kills", "whose"),
    [
        ({"memory.events": "max 9\noom 1\noom_kill 1\n"}, 1, "memory"),
        ({"memory.events": "max 9\noom 0\noom_kill 1\n"}, 1, "lost"),
        ({"memory.events": "max 9\noom 1\noom_kill 0\n"}, 1, ""),
        (V1 | {"memory.max_usage_in_bytes": "104857600\n"}, 1, "memory"),
        (V1 | {"memory.max_usage_in_bytes": "90000000\n"}, 1, "lost"),
        ({}, 0, ""),
        ({}, 1, "lost"),
    ],
)
def test_whose_memory_ended_is_told(files: dict[str, str], kills: int, whose: str, tmp_path: Path) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    assert out_of_memory([str(tmp_path)], kills) == whose


def test_kills_of_the_machine_are_counted(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text("nr_free_pages 12\noom_kill 3\n")
    assert kills_of_machine(str(tmp_path / "vmstat")) == 3
    assert kills_of_machine(str(tmp_path / "missing")) == 0
