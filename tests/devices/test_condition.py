"""What nvidia-smi says, read and judged; a fake says it."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from grader.devices.condition import Condition, doubts, identity, look

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

QUIET = Condition("before", 345, 1980, 2619, 31, 70.5, 0, True, (), 0)


def smi(line: str, apps: str = "", knows: str = "clocks_event_reasons") -> Callable[[Sequence[str]], str]:
    def tell(command: Sequence[str]) -> str:
        if "--query-compute-apps=pid" in command:
            return apps
        return line if knows in command[1] else ""

    return tell


def test_every_number_is_read() -> None:
    seen = look("before", smi("345, 1980, 2619, 31, 70.50, 0, Enabled, 0x0000000000000001"))
    assert seen == QUIET


def test_slowdowns_are_named_and_others_counted() -> None:
    seen = look("during", smi("1200, 1980, 2619, 88, 690.1, 99, Disabled, 0x0000000000000068", "17\n18"))
    assert seen is not None
    assert seen.slowdowns == (
        "hardware slowdown",
        "thermal slowdown by the driver",
        "thermal slowdown by the hardware",
    )
    assert (seen.others, seen.persistent) == (2, False)


def test_a_runner_of_the_grader_is_no_stranger() -> None:
    with subprocess.Popen(["sh", "-c", "read line", "runner.zip"], stdin=subprocess.PIPE) as runner:
        while not Path("/proc", str(runner.pid), "cmdline").read_bytes():  # it has no arguments at first
            pass
        apps = f"1\n{runner.pid}\n4194305"  # the last is no process
        seen = look("before", smi("345, 1980, 2619, 31, 70.50, 0, Enabled, 0x1", apps))
        assert seen is not None
        assert seen.others == 2
        runner.communicate()


def test_a_gpu_is_known_by_its_uuid_or_by_the_name_it_is_lent_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    asked: list[Sequence[str]] = []

    def tell(command: Sequence[str]) -> str:
        asked.append(command)
        return "GPU-a1b2"

    assert identity(tell) == "GPU-a1b2"
    assert asked[0][-2:] == ("-i", "3")
    assert identity(lambda _: "") == "3"


def test_older_drivers_know_the_reasons_by_another_name() -> None:
    line = "345, 1980, 2619, 31, 70.50, 0, Enabled, 0x1"
    assert look("before", smi(line, knows="clocks_throttle_reasons")) == QUIET


def test_what_is_not_said_is_none_and_a_silent_machine_has_no_condition() -> None:
    seen = look("before", smi("[N/A], 1980, 2619, [Not Supported], [N/A], 0, [N/A], Not Active"))
    assert seen is not None
    assert (seen.sm_mhz, seen.celsius, seen.watts, seen.persistent, seen.slowdowns) == (None,) * 4 + ((),)
    assert look("before", lambda _: "") is None


@pytest.mark.parametrize(("lent", "named"), [(None, "0"), ("3,1", "3"), ("GPU-a1b2", "GPU-a1b2")])
def test_the_gpu_that_is_lent_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, lent: str | None, named: str
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if lent:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", lent)
    asked: list[str] = []
    look("now", lambda command: asked.append(command[-1]) or "")  # type: ignore[func-returns-value]
    assert set(asked) == {named}


def test_a_quiet_gpu_raises_no_doubt_and_a_power_cap_neither() -> None:
    assert doubts(QUIET, [replace(QUIET, slowdowns=("power cap",))]) == ()


def test_heat_and_neighbours_raise_doubts_in_words() -> None:
    hot = replace(QUIET, celsius=91, slowdowns=("thermal slowdown by the driver",))
    found = doubts(replace(QUIET, others=2), [QUIET, hot, hot])
    assert found == (
        "2 other process(es) had the GPU open before timing began",
        "the GPU lowered its clocks: thermal slowdown by the driver, at 91 degrees",
    )
