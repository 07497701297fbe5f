"""The grading processes: they end when the batch does, and import what it imports."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

from grader.batch import children
from grader.batch.children import Children, StoppedError

STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""


def test_a_process_that_ignores_its_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "GRACE_SECONDS", 0.2)
    running = Children()
    codes: list[int] = []
    command = [sys.executable, "-c", STUBBORN, str(tmp_path / "ready")]
    thread = threading.Thread(target=lambda: codes.append(running.run(command, tmp_path / "said")))
    thread.start()
    while not (tmp_path / "ready").exists():
        time.sleep(0.02)
    running.stop()
    thread.join(30)
    assert codes == [-9]


def test_nothing_is_started_after_the_stop(tmp_path: Path) -> None:
    running = Children()
    running.stop()
    with pytest.raises(StoppedError):
        running.run(["touch", str(tmp_path / "started")], tmp_path / "said")
    assert not (tmp_path / "started").exists()


def test_a_process_imports_the_same_grader_whatever_lies_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "grader").mkdir()
    (tmp_path / "grader" / "__init__.py").write_text("raise SystemExit('another grader')")
    monkeypatch.chdir(tmp_path)
    code = "import grader, sys; print(grader.__file__, file=sys.stderr)"
    assert Children().run([sys.executable, "-c", code], tmp_path / "said") == 0
    said = (tmp_path / "said").read_text().strip()
    assert said == str(Path(children.__file__).parents[1] / "__init__.py")
