"""The workers: they end with the batch, are replaced, and import what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from grader.batch import crew
from grader.batch.crew import Crew, EndedError, NoWorkerLeftError, Station, StoppedError, Worker

ECHO = """
import json, os, sys
import grader
held = []
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("grow"):
        held.append(b"x" * asked["grow"])
    if asked.get("exit"):
        sys.exit(7)
    print(json.dumps({"pid": os.getpid(), "gpu": os.environ.get("CUDA_VISIBLE_DEVICES", ""),
                      "grader": grader.__file__}), flush=True)
"""
STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""
ORPHANED = """
import sys, time
from grader.batch.crew import Worker, Station
worker = Worker(Station())
options = {"device": "sim", "sandbox": "process"}
worker.ask({"operation": "look", "assignment": "llm_systems_3", "options": options})
print(worker._process.pid, flush=True)
time.sleep(600)
"""
COMMAND = (sys.executable, "-c", ECHO)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_a_worker_answers_until_it_ends_and_another_takes_its_place() -> None:
    worker = Worker(Station(), COMMAND)
    first = worker.ask({})["pid"]
    assert worker.ask({})["pid"] == first
    with pytest.raises(EndedError, match="ended with exit code 7"):
        worker.ask({"exit": True})
    second = worker.ask({})["pid"]
    assert second != first
    worker.end(for_good=True)
    assert not alive(second)
    with pytest.raises(StoppedError):
        worker.ask({})


def test_a_worker_that_leaks_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "MOST_GROWTH_BYTES", 32 << 20)
    worker = Worker(Station(), COMMAND)
    pids = {worker.ask({})["pid"] for _ in range(crew.SETTLED_ANSWERS)}
    pids.add(worker.ask({"grow": 64 << 20})["pid"])
    assert len(pids) == 1
    assert worker.ask({})["pid"] not in pids
    worker.end()


def test_a_worker_that_ignores_its_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "GRACE_SECONDS", 0.2)
    workers = Crew([Station()], [sys.executable, "-c", STUBBORN, str(tmp_path / "ready")])
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            with workers.worker() as worker:
                worker.ask({})
        except StoppedError as error:
            raised.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    workers.stop()
    thread.join(30)
    assert len(raised) == 1


def test_nobody_is_lent_after_the_stop_or_when_all_are_dismissed() -> None:
    workers = Crew([Station("0"), Station("0"), Station("1")], COMMAND)
    workers.dismiss("0")
    with workers.worker() as worker:
        assert worker.ask({})["gpu"] == "1"
        workers.dismiss("1")
    with pytest.raises(NoWorkerLeftError), workers.worker():
        pass
    worker.end()
    workers.stop()
    with pytest.raises(StoppedError), workers.worker():
        pass


def test_a_worker_imports_the_same_grader_whatever_lies_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "grader").mkdir()
    (tmp_path / "grader" / "__init__.py").write_text("raise SystemExit('another grader')")
    monkeypatch.chdir(tmp_path)
    worker = Worker(Station(), COMMAND)
    assert worker.ask({})["grader"] == str(Path(crew.__file__).parents[1] / "__init__.py")
    worker.end()


def test_a_worker_ends_with_a_batch_that_is_killed() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", ORPHANED], stdout=subprocess.PIPE, env=environment) as batch:
        assert batch.stdout is not None
        pid = int(batch.stdout.readline())
        assert alive(pid)
        batch.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 60
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not alive(pid)
