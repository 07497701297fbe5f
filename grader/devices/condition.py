"""The condition of the GPU as nvidia-smi tells: clocks, heat, what holds it back, who else uses it."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    0x2: "clocks set by somebody",
}
"""Bits of the reasons that say why clocks are lower than they could be; idleness is none."""
DOUBTFUL = ("hardware slowdown", SLOWDOWNS[0x20], SLOWDOWNS[0x40], SLOWDOWNS[0x80])


@dataclass(frozen=True)
class Condition:
    """One look at the GPU; None where nvidia-smi does not say.

    Attributes:
        moment: when that was.
        sm_mhz: clock of the multiprocessors.
        most_sm_mhz: the highest that the GPU can run at.
        memory_mhz: clock of the memory.
        celsius: temperature.
        watts: power draw.
        busy_percent: of the last moments, in which a kernel ran.
        persistent: whether the driver stays loaded while nobody uses the GPU.
        slowdowns: why the clocks are lower than they could be.
        others: processes that use the GPU.
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
    """What ``command`` prints; "" if it cannot."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TELL_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def look(moment: str, tell: Tell = ask) -> Condition | None:
    """The condition of the GPU that jobs get; None where nvidia-smi cannot say."""
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
        others=len(apps.split()),
    )


def doubts(before: Condition, during: Sequence[Condition]) -> tuple[str, ...]:
    """Why the times may be longer than the kernels deserve: sentences for a report; empty if nothing does.

    Args:
        before: a look while nothing of the grader ran on the GPU.
        during: looks while something did.
    """
    found = []
    if before.others:
        found.append(f"{before.others} other process(es) had the GPU open before timing began")
    slow = dict.fromkeys(name for look in during for name in look.slowdowns if name in DOUBTFUL)
    hottest = max((look.celsius for look in during if look.celsius is not None), default=None)
    heat = f", at {hottest:g} degrees" if hottest is not None else ""
    found += [f"the GPU held its clocks back: {name}{heat}" for name in slow]
    return tuple(found)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
