"""How many warp instructions a call may run on the simulator.

A generous multiple of what naive right kernels need. Counted in instructions, a limit ends the same call at
the same place on any machine, however busy it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.devices import calls

if TYPE_CHECKING:
    from grader.devices.device import Call

_WAITING = 4  # times what a launch may run without progress, as blocks that wait for each other run meanwhile


@dataclass(frozen=True)
class Budget:
    """Warp instructions; rows and elements are those of the largest array of a call.

    Attributes:
        base: of any call.
        per_element: for one thread that does all the work of a row, or of all rows, and takes several passes.
        per_row: for a block of 1024 threads per row, most of which have nothing to do.
    """

    base: int = 16_000_000
    per_element: int = 512
    per_row: int = 16_384

    def progress(self, call: Call) -> int:
        """What a launch may run until one of its warps ends or passes a barrier of its block."""
        needed = (self.progress(one) for one, _ in call.needs)
        return max(self.base + self.per_element * max(map(math.prod, _shapes(call)), default=0), *needed, 0)

    def total(self, call: Call) -> int:
        """What all launches of the call may run together.

        Blocks may also share the work along the last axis, so that is taken for rows where it is longer.
        """
        rows = (max(math.prod(shape[:-1]), *shape[-1:], 1) for shape in _shapes(call))
        needed = sum(times * self.total(one) for one, times in call.needs)
        return _WAITING * self.progress(call) + self.per_row * max(rows, default=1) + needed


BUDGET = Budget()
"""Of a call, where an assignment says nothing else."""


def _shapes(call: Call) -> list[tuple[int, ...]]:
    return [array.shape for array in calls.arrays(call)]
