"""The condition of the GPU from nvidia-smi: clocks, temperature, reasons of slow clocks, other processes."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.devices.runner import ARCHIVE
from grader.sandbox.sandbox import lent_gpu

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Tell = Callable[[Sequence[str]], str]

TELL_SECONDS = 20.0
_FIELDS = (
    "clocks.sm",
    "clocks.max.sm",
    "clocks.mem",
    "temperature.gpu",
    "power.draw",
    "utilization.gpu",
    "persistence_mode",
)
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # its name now, and until 2023
SLOWDOWNS = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal slowdown by the driver",
    0x40: "thermal slowdown by the hardware",
    0x80: "power brake",
    0x2: "clocks set by a user",
}
"""Bits of nvidia-smi's mask of reasons why the clocks are low; that of an idle GPU is left out."""
DOUBTFUL = ("hardware slowdown", SLOWDOWNS[0x20], SLOWDOWNS[0x40], SLOWDOWNS[0x80])


@dataclass(frozen=True)
class Condition:
    """The state of the GPU at one moment; a value is None where nvidia-smi gives none.

    Attributes:
        moment: a text that names the moment.
        sm_mhz: clock of the multiprocessors.
        most_sm_mhz: highest clock of the multiprocessors.
        memory_mhz: clock of the memory.
        celsius: temperature.
        watts: power draw.
        busy_percent: share of the last sampling period in which a kernel ran.
        persistent: whether the driver stays loaded while nobody uses the GPU.
        slowdowns: reasons why the clocks are low.
        others: number of processes that use the GPU and are no runners, which wait while something is timed.
    """

    moment: str
    sm_mhz: float | None = None
    most_sm_mhz: float | None = None
    memory_mhz: float | None = None
    celsius: float | None = None
    watts: float | None = None
    busy_percent: float | None = None
    persistent: bool | None = None
    slowdowns: tuple[str, ...] = ()
    others: int | None = None


def ask(command: Sequence[str]) -> str:
    """The output of ``command``; "" if it cannot run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TELL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def identity(tell: Tell = ask) -> str:
    """The UUID of the GPU that jobs get; the name by which it is lent where nvidia-smi does not tell it."""
    lent = lent_gpu()
    uuid = tell(("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader", "-i", lent))
    return uuid or lent


def look(moment: str, tell: Tell = ask) -> Condition | None:
    """The condition of the GPU that jobs get; None if nvidia-smi gives no answer."""
    lent = lent_gpu()
    for reasons in _REASONS:
        query = ",".join((*_FIELDS, reasons))
        line = tell(("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits", "-i", lent))
        if line:
            break
    else:
        return None
    *numbers, persistence, mask = (part.strip() for part in line.splitlines()[0].split(","))
    sm, most, memory, celsius, watts, busy = map(_number, numbers)
    apps = tell(("nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader", "-i", lent))
    bits = int(mask, 16) if mask.startswith("0x") else 0
    return Condition(
        moment=moment,
        sm_mhz=sm,
        most_sm_mhz=most,
        memory_mhz=memory,
        celsius=celsius,
        watts=watts,
        busy_percent=busy,
        persistent={"Enabled": True, "Disabled": False}.get(persistence),
        slowdowns=tuple(name for bit, name in SLOWDOWNS.items() if bits & bit),
        others=sum(not _is_runner(process) for process in apps.split()),
    )


def doubts(before: Condition, during: Sequence[Condition]) -> tuple[str, ...]:
    """Reasons why the measured times may be too long, as sentences for a report; empty if there are none.

    Args:
        before: the condition while nothing of the grader ran on the GPU.
        during: the conditions while something of it did.
    """
    reasons = []
    if before.others:
        reasons.append(f"{before.others} other process(es) had the GPU open before timing began")
    slow = dict.fromkeys(name for look in during for name in look.slowdowns if name in DOUBTFUL)
    hottest = max((look.celsius for look in during if look.celsius is not None), default=None)
    heat = f", at {hottest:g} degrees" if hottest is not None else ""
    reasons += [f"the GPU lowered its clocks: {name}{heat}" for name in slow]
    return tuple(reasons)


def _is_runner(process: str) -> bool:
    """Whether the process with this number is a runner of this user's, as far as can be seen from here."""
    with suppress(OSError):
        command = Path("/proc", process, "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        return command[-1] == ARCHIVE.encode()
    return False


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
