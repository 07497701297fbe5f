"""Who has a GPU alone has it alone, among threads and processes, and who waits for that gets it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from typing import TYPE_CHECKING

import pytest

from grader.devices import sharing
from grader.devices.sharing import Sharing
from grader.processes.locks import LocksError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATIENCE = 60.0
HOLDER = """
import sys
from grader.devices.sharing import Sharing
with getattr(Sharing("GPU-1"), sys.argv[1])():
    print("held", flush=True)
    input()
"""


class WaitedError(Exception):
    """Raised where somebody has to wait."""


def refuse() -> None:
    raise WaitedError


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path / f"kernel-grader-{os.getuid()}"


@pytest.mark.parametrize(
    ("first", "second", "waits"),
    [
        ("alone", "alone", True),
        ("alone", "shared", True),
        ("shared", "alone", True),
        ("shared", "shared", False),
    ],
)
def test_only_those_who_share_it_have_it_at_once(first: str, second: str, waits: bool) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, first], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            with getattr(Sharing("GPU-1"), second)(refuse):
                assert not waits
        except WaitedError:
            assert waits
        with Sharing("GPU-2").alone(refuse):
            pass
        holder.send_signal(signal.SIGKILL)
    with Sharing("GPU-1").alone(refuse):  # the kernel has unlocked what a dead process held
        pass


def begun(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_nobody_who_comes_much_later_gets_it_before_one_who_waits_to_have_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "SHARED_SECONDS", 0.0)
    order: list[str] = []
    waits, late = threading.Event(), threading.Event()

    def alone() -> None:
        with Sharing("GPU-1").alone(waits.set):
            order.append("alone")

    def shared() -> None:
        with Sharing("GPU-1").shared(late.set):
            order.append("shared")

    with Sharing("GPU-1").shared():
        first = begun(alone)
        assert waits.wait(PATIENCE)
        second = begun(shared)
        assert late.wait(PATIENCE)
        assert order == []
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert order == ["alone", "shared"]


def test_of_those_who_wait_for_one_that_has_it_alone_who_want_to_share_it_come_first_after_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "ALONE_SECONDS", 0.0)
    order: list[str] = []
    turn, wanted = threading.Event(), threading.Event()

    def alone() -> None:
        with Sharing("GPU-1").alone(turn.set):
            order.append("alone")

    def shared() -> None:
        with Sharing("GPU-1").shared(wanted.set):
            order.append("shared")

    with Sharing("GPU-1").alone():
        first = begun(alone)
        assert turn.wait(PATIENCE)
        second = begun(shared)
        assert wanted.wait(PATIENCE)
        assert order == []
    first.join(PATIENCE)
    second.join(PATIENCE)
    assert order == ["shared", "alone"]


def test_several_have_it_alone_one_after_the_other_before_who_wants_to_share_it() -> None:
    order: list[str] = []
    turns, wanted = (threading.Event(), threading.Event()), threading.Event()

    def alone(number: int) -> None:
        with Sharing("GPU-1").alone(turns[number].set):
            order.append("alone")
            assert wanted.wait(PATIENCE)

    def shared() -> None:
        with Sharing("GPU-1").shared(wanted.set):
            order.append("shared")

    with Sharing("GPU-1").alone():  # nobody wanted to share it at that moment
        waiting = [begun(lambda number=number: alone(number)) for number in (0, 1)]  # type: ignore[misc]
        assert all(turn.wait(PATIENCE) for turn in turns)
        waiting.append(begun(shared))
        assert wanted.wait(PATIENCE)
    for thread in waiting:
        thread.join(PATIENCE)
    assert order == ["alone", "alone", "shared"]


def test_who_shares_it_may_share_it_again_while_another_one_waits_to_have_it_alone() -> None:
    mine, waits = Sharing("GPU-1"), threading.Event()

    def alone() -> None:
        with Sharing("GPU-1").alone(waits.set):
            pass

    with mine.shared():
        thread = begun(alone)
        assert waits.wait(PATIENCE)
        with mine.shared(refuse):
            pass
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_who_gives_up_waiting_holds_nothing() -> None:
    with Sharing("GPU-1").shared(), pytest.raises(WaitedError), Sharing("GPU-1").alone(refuse):
        pass
    with Sharing("GPU-1").alone(refuse):
        pass


def test_who_has_it_alone_may_use_it_as_others_do() -> None:
    mine = Sharing("GPU-1")
    with mine.alone(refuse), mine.shared(refuse):
        thread = begun(lambda: None)
        thread.join(PATIENCE)
    with mine.shared(refuse), Sharing("GPU-1").shared(refuse):
        pass


def test_a_folder_of_others_is_not_used(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(LocksError, match="is not a folder of yours alone"), Sharing("GPU-1").alone():
        pass


def test_a_name_with_a_slash_is_no_path(folder: Path) -> None:
    with Sharing("MIG-1/2/0").alone():
        names = {path.name.removeprefix("gpu-MIG-1-2-0") for path in folder.iterdir()}
        assert names == {"", ".claim", ".turn", ".wanted"}
