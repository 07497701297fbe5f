"""Chooses the device: a GPU if one works, otherwise the sim; and says which and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.devices.budget import BUDGET, Budget
from grader.devices.gpu import Gpu, probe
from grader.devices.runner import LIMITS
from grader.devices.sim import Sim
from grader.records.errors import DeviceError
from grader.simulator.driver import check_installed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from grader.devices.device import Device
    from grader.devices.gpu import GpuProbe
    from grader.sandbox.sandbox import Limits, Sandbox


@dataclass(frozen=True)
class Choice:
    """A device and, for the header of a report, the reason why it was chosen."""

    device: Device
    reason: str


def select(
    kind: str,
    sandbox: Sandbox,
    runtime: Path | None,
    limits: Limits = LIMITS,
    budget: Budget = BUDGET,
    *,
    leaks_allowed: bool = True,
    probed: Callable[[Path | None], GpuProbe] = probe,
) -> Choice:
    """The device for ``kind``.

    Args:
        kind: ``gpu``, ``sim``, or ``auto`` for a GPU if one works and otherwise the sim.
        sandbox: confines the runner.
        runtime: the folder of the real libcudart, None if this machine has none.
        limits: limits of each runner.
        budget: instruction budget of each call on the sim.
        leaks_allowed: whether a leak that the sim finds is a warning only.
        probed: tells whether a GPU works.

    Raises:
        DeviceError: a GPU was asked for and none works, or the simulator is not built; the message says what
            is missing.
    """
    sim = Sim(sandbox, limits, budget, leaks_allowed=leaks_allowed)
    if kind == "sim":
        return _sim(sim, "asked for")
    gpu = probed(runtime)
    if gpu.usable and runtime is not None:
        device = Gpu(sandbox, runtime, gpu, limits)
        return Choice(device, "asked for" if kind == "gpu" else "it works")
    if kind == "gpu":
        raise DeviceError(f"no GPU works here: {gpu.reason}")
    return _sim(sim, f"no GPU: {gpu.reason}")


def _sim(sim: Sim, reason: str) -> Choice:
    check_installed()
    return Choice(sim, reason)
