"""How long the judge waits for a runner: by the time that its processes use, not by wall time.

A busy machine makes everything take longer and must not change a verdict. So what counts against a submission
is the processor time that its host code uses, and the time that it sleeps while nothing works for it. Time in
which the machine gave it no processor counts for nothing; when far too much of that has passed, the machine
is at fault.
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
BUSY_SECONDS = 1800.0  # of wall time for one answer, which only a machine without free processors takes
_TICK_SECONDS = 0.05


@dataclass(frozen=True)
class Allowance:
    """What a runner may use until it answers.

    Attributes:
        seconds: of processor time, of all its processes together.
        on_gpu: whether its kernels run on a GPU. CUDA waits for them asleep or in a busy loop, so there the
            two count together: ``seconds`` is the device time of the call.
    """

    seconds: float
    on_gpu: bool = False


class Patience:
    """Waits for one answer of a runner; ``over`` says when it has used what it may.

    Args:
        usage: what the runner's processes have used since they were started.
        allowance: what they may use until the answer.
        working: whether the simulator works for them now, so that they sleep for a good reason.
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
        self.asleep = False  # what took too long was sleep

    def over(self) -> bool:
        """Whether to wait no longer; ``status`` and ``message`` then say why."""
        now = time.monotonic()
        if self.status is None and now - self._looked >= _TICK_SECONDS:
            self._looked = now
            self._look(now - self._began)
        return self.status is not None

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
                "that does not come",
            )
        if self.status is None and passed > BUSY_SECONDS:
            self._end(
                Status.LOST,
                f"the machine was too busy: {passed:.0f} s passed, in which this call got {worked:.0f} s of "
                "processor time. Grade again when it is less busy.",
            )

    def _end(self, status: Status, message: str) -> None:
        self.status, self.message = status, message
