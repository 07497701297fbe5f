"""The queue of compiles holds between processes, gives back what the dead held, and can be left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import TYPE_CHECKING

import pytest

from grader.languages import slots
from grader.languages.slots import SlotError, count, slot

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
HOLDER = (
    "import sys\n"
    "from grader.languages import slots\n"
    "slots.count = lambda: 1\n"
    "print('begun', flush=True)\n"
    "with slots.slot():\n"
    "    print('held', flush=True)\n"
    "    input()\n"
)


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(slots, "count", lambda: 1)
    return tmp_path / f"kernel-grader-{os.getuid()}"


def _holder() -> subprocess.Popen[str]:
    """Another grader that takes a slot, up to where it has begun."""
    pipe = subprocess.PIPE
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    assert _line(holder) == "begun\n"
    return holder


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


def _end(process: subprocess.Popen[str]) -> str:
    process.kill()
    return process.communicate()[1]


@pytest.mark.parametrize(
    ("processors", "free", "most"), [(4, 100 * GIB, 4), (4, 5 * GIB, 2), (4, GIB, 1), (1, 9 * GIB, 1)]
)
def test_there_are_as_many_as_the_machine_carries(
    processors: int, free: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(processors)))
    monkeypatch.setattr(slots, "free_bytes", lambda: free)
    assert count() == most


def test_a_killed_grader_gives_its_slot_back() -> None:
    holder = _holder()
    assert _line(holder) == "held\n"
    taken = threading.Event()

    def wait() -> None:
        with slot():
            taken.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert not taken.wait(0.5)
    _end(holder)
    waiting.join(60)
    assert taken.is_set()


def test_ctrl_c_ends_the_wait() -> None:
    with slot():
        waiting = _holder()
        time.sleep(0.3)
        assert waiting.poll() is None
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(60) != 0
        assert "KeyboardInterrupt" in _end(waiting)


def test_another_thread_can_end_the_wait() -> None:
    given_up = threading.Event()
    threading.Timer(0.2, given_up.set).start()
    with slot(), pytest.raises(SlotError, match="interrupted"), slot(given_up):
        pass


def test_a_slot_is_free_again_after_an_error() -> None:
    with pytest.raises(KeyError), slot():
        raise KeyError
    with slot():
        pass


def test_a_folder_of_others_is_not_taken(own_folder: Path) -> None:
    own_folder.mkdir()
    own_folder.chmod(0o777)
    with pytest.raises(SlotError, match="is not a folder of yours alone"), slot():
        pass
    own_folder.rmdir()
    own_folder.symlink_to("/")
    with pytest.raises(SlotError, match="is not a folder of yours alone"), slot():
        pass
