"""The time-outs of a runner, which measure the time that its processes use, not wall time.

A busy machine makes everything take longer and must not change a verdict. So a submission is charged for the
processor time of its host code, and for the time that it sleeps while nothing works for it. It is not charged
for time in which the machine gave it no processor. If too much of such time passes, the machine is at fault.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.devices.device import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.sandbox.sandbox import Usage

ASLEEP_SECONDS = 5.0
BUSY_SECONDS = 1800.0  # wall time for one answer, which is reached only if the processors are busy
_TICK_SECONDS = 0.05


@dataclass(frozen=True)
class Allowance:
    """The time that a runner may use until it answers.

    Attributes:
        seconds: processor time of all its processes together.
        on_gpu: whether its kernels run on a GPU. CUDA waits for them asleep or in a busy loop, so sleep and
            processor time are added there, and ``seconds`` is the device time of the call.
    """

    seconds: float
    on_gpu: bool = False


class Patience:
    """Waits for one answer of a runner; ``over`` says when the runner has used its allowance.

    Args:
        usage: returns the time that the runner's processes have used since they were started.
        allowance: the time that they may use until the answer.
        working: returns whether the simulator works for them now, so that they may sleep.
    """

    def __init__(
        self,
        usage: Callable[[], Usage],
        allowance: Allowance,
        working: Callable[[], bool] = lambda: False,
    ) -> None:
        self._usage = usage
        self._allowance = allowance
        self._working = working
        self._began = self._looked = time.monotonic()
        self._first = self._last = usage()
        self._slept = 0.0
        self.status: Status | None = None
        self.message = ""
        self.asleep = False  # whether the code slept for too long

    def over(self) -> bool:
        """Whether to stop waiting; ``status`` and ``message`` then say why."""
        now = time.monotonic()
        if self.status is None and now - self._looked >= _TICK_SECONDS:
            self._looked = now
            self._look(now - self._began)
        return self.status is not None

    def wake(self) -> None:
        """Forget the sleep since the last look: the judge worked for the runner."""
        self._last = self._usage()

    def _look(self, passed: float) -> None:
        usage, working = self._usage(), self._working()
        if not working:
            self._slept += usage.asleep_seconds - self._last.asleep_seconds
        self._last = usage
        worked, seconds = usage.processor_seconds - self._first.processor_seconds, self._allowance.seconds
        if self._allowance.on_gpu:
            if worked + self._slept > seconds:
                self._end(
                    Status.TIMEOUT,
                    f"no end within {seconds:g} s of device time: an endless loop, a deadlock, or far too "
                    "slow?",
                )
        elif worked > seconds:
            self._end(
                Status.TIMEOUT,
                f"the host code used more than {seconds:g} s of processor time: an endless loop, or far too "
                "slow?",
            )
        elif self._slept > ASLEEP_SECONDS:
            self.asleep = True
            self._end(
                Status.TIMEOUT,
                f"the host code slept for {ASLEEP_SECONDS:g} s while no kernel ran: it waits for something "
                "that does not happen",
            )
        if self.status is None and passed > BUSY_SECONDS:
            self._end(
                Status.LOST,
                f"the machine was too busy: {passed:.0f} s passed, but this call got only {worked:.0f} s of "
                "processor time. Grade again when the machine is less busy.",
            )

    def _end(self, status: Status, message: str) -> None:
        self.status, self.message = status, message
