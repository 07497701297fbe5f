"""Where the host code is, in every backend: asked by a signal, told by the runner, named by the judge."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.devices.runner import Runner, RunnerError, Start, packed
from grader.devices.stack import where
from grader.runner.witness import VARIABLE
from grader.sandbox.process import ProcessSandbox
from grader.sandbox.sandbox import Ended, Job, Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.sandbox.live import Live
    from grader.sandbox.sandbox import Running, Sandbox

PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
ENTRY_POINTS = (
    "launch_attn_softmax",
    "launch_softmax",
    "launch_often",
    "launch_poll",
    "launch_child",
    "launch_lock",
)
STUCK = (
    "import ctypes, os, sys\n"
    "sys.path.insert(0, 'runner.zip')\n"
    "from grader.runner.witness import Witness\n"
    f"witness = Witness(int(os.environ[{VARIABLE!r}]))\n"
    "launchers = [getattr(ctypes.CDLL(sys.argv[1]), name) for name in sys.argv[2:]]\n"
    "print('begun', flush=True)\n"
    "for launch in launchers: launch()\n"
)

CALL = {
    "operation": "call",
    "calls": [{"entry_point": "launch_attn_softmax", "arguments": [], "returns": False}],
    "memory": "host",
    "streams": 0,
    "images": [],
    "guard": 0,
    "queued": [],
    "staged": [],
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("waits") / "waits.so"
    source = Path(__file__).with_name("host_waits.cpp")
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", str(target), str(source)], check=True)
    return target


@contextmanager
def _stuck(sandbox: Sandbox, library: Path, *words: str, script: str = STUCK) -> Iterator[Running]:
    """A runner that calls an entry point, which does not come back."""
    own = sandbox.image is None
    program, inputs = (PYTHON, (Path(sys.base_prefix),)) if own else (sandbox.image.python, ())  # type: ignore[union-attr]
    memory = os.memfd_create("witness")
    job = Job(
        argv=(str(program), "-I", "-S", "-B", "-c", script, str(library), *words),
        limits=Limits(wall_seconds=120),
        inputs=(library, *inputs),
        files={"runner.zip": packed()},
        environment={VARIABLE: str(memory)},
        pass_fds=(memory,),
        witness=memory,
    )
    try:
        running = sandbox.start(job)
    finally:
        os.close(memory)
    try:
        assert running.stdout.readline() == b"begun\n"
        asleep = running.usage().asleep_seconds + 0.2  # behind what it slept before it began
        while running.usage().processor_seconds < 1 and running.usage().asleep_seconds < asleep:
            time.sleep(0.02)  # it is in the call by then
        yield running
    finally:
        running.kill()


@pytest.mark.parametrize(
    ("entry_point", "asleep", "told"),
    [
        ("launch_attn_softmax", True, "in helper_wait, called by launch_attn_softmax, asleep in nanosleep"),
        ("launch_softmax", False, "in the loop of spin_forever, called by launch_softmax"),
        ("launch_poll", True, "in launch_poll, asleep in poll"),
        ("launch_child", True, "in launch_child, asleep in wait4"),
    ],
)
def test_the_function_and_what_it_waits_for_are_named(
    sandbox: Sandbox, library: Path, entry_point: str, asleep: bool, told: str
) -> None:
    with _stuck(sandbox, library, entry_point) as running:
        text = running.witness(30)
    assert where(text, [library], ENTRY_POINTS, asleep=asleep) == told, text
    assert text.count('  File "<string>", line 7 in <module>') == 1


def test_it_can_be_asked_again_and_not_once_it_has_ended(library: Path) -> None:
    with _stuck(ProcessSandbox(), library, "launch_poll", "launch_lock") as running:
        for entry_point in ("launch_poll", "launch_lock"):  # the question ends the first
            text = running.witness(30)
            assert text.count(f" {entry_point}\n") == 1
            assert f"in {entry_point}, asleep in " in where(text, [library], ENTRY_POINTS, asleep=True)
            time.sleep(0.5)
        assert running.kill().ended is Ended.SIGNALLED
        assert running.witness(30) == ""


def test_only_who_catches_the_signal_gets_it_and_not_its_children(sandbox: Sandbox, library: Path) -> None:
    script = (
        "import os, signal, time\n"
        "if os.fork() == 0: time.sleep(60)\n"
        "print('begun', flush=True); input(); print('alive', flush=True)\n"
        "signal.signal(signal.SIGPROF, lambda *_: os.write(1, b'asked\\n'))\n"
        "if os.fork() == 0: time.sleep(60)\n"
        "print('ready', flush=True); input(); print('done', flush=True)\n"
    )
    with _stuck(sandbox, library, script=script) as running:
        assert running.witness(0.3) == ""
        running.stdin.write(b"\n")
        running.stdin.flush()
        assert [running.stdout.readline() for _ in range(2)] == [b"alive\n", b"ready\n"]
        assert running.witness(0.3) == ""
        running.stdin.write(b"\n")
        running.stdin.flush()
        assert [running.stdout.readline() for _ in range(2)] == [b"asked\n", b"done\n"]


def test_what_a_job_says_is_bounded_and_printable(library: Path) -> None:
    script = (
        "import os, sys, time\n"
        f"file = int(os.environ[{VARIABLE!r}])\n"
        "print('begun', flush=True)\n"
        "while True: os.pwrite(file, b'\\x1b[31m\\0\\xff' * 5000, 0)\n"
    )
    with _stuck(ProcessSandbox(), library, script=script) as running:
        text = running.witness(0.5)
    assert 0 < len(text) <= 8192
    assert text.replace("\n", "").isprintable()


def test_a_job_without_a_witness_says_nothing(sandbox: Sandbox) -> None:
    running = sandbox.start(Job(("/bin/sleep", "60"), Limits(wall_seconds=100)))
    assert running.witness(30) == ""
    assert running.kill().ended is Ended.SIGNALLED


def test_the_runner_itself_is_a_witness(library: Path, tmp_path: Path) -> None:
    """Through its own loop, which closes what it does not know."""
    runtime = tmp_path / "libcudart.so.13"
    source = Path(__file__).parents[1] / "devices" / "fake_cudart.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", "-o", str(runtime), str(source)], check=True)
    seen: list[Running] = []
    memory = os.memfd_create("witness")

    class Watched(ProcessSandbox):
        def start(self, job: Job) -> Live:
            seen.append(super().start(replace(job, witness=memory)))
            return seen[0]  # type: ignore[return-value]

    start = Start({library: ENTRY_POINTS}, runtime, environment={VARIABLE: str(memory)}, pass_fds=(memory,))
    with closing(Runner(Watched(), start)) as runner:
        os.close(memory)
        text: list[str] = []

        def ask() -> None:
            while seen[0].usage().asleep_seconds < 0.5:
                time.sleep(0.02)
            text.append(seen[0].witness(30))
            runner.close()

        asking = threading.Thread(target=ask)
        asking.start()
        with pytest.raises(RunnerError):
            runner.ask(CALL, (), 0, 60)
        asking.join()
    told = "in helper_wait, called by launch_attn_softmax, asleep in nanosleep"
    assert where(text[0], [library], ENTRY_POINTS, asleep=True) == told
    assert "runner.zip/grader/runner/server.py" in text[0]
