"""The limit on the warp instructions that a call may run on the simulator.

It is a generous multiple of what a naive correct kernel needs. Because it counts instructions, it ends a call
at the same place on every machine, however busy that machine is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from grader.devices import calls

if TYPE_CHECKING:
    from grader.devices.device import Call

_WAITING = 4  # multiple of the progress limit: blocks that wait for each other run instructions meanwhile


@dataclass(frozen=True)
class Budget:
    """Numbers of warp instructions; rows and elements are those of the largest array of a call.

    Attributes:
        base: for every call.
        per_element: allows one thread to do all the work of a row, or of all rows, in several passes.
        per_row: allows a block of 1024 threads per row, most of which have nothing to do.
    """

    base: int = 16_000_000
    per_element: int = 512
    per_row: int = 16_384

    def progress(self, call: Call) -> int:
        """Instructions that a launch may run until one of its warps ends or passes a barrier of its block."""
        needed = (self.progress(required) for required, _ in call.needs)
        return max(self.base + self.per_element * max(map(math.prod, _shapes(call)), default=0), *needed, 0)

    def total(self, call: Call) -> int:
        """Instructions that all launches of the call may run together.

        Blocks may also share the work along the last axis, so its length counts as rows where it is larger.
        """
        rows = (max(math.prod(shape[:-1]), *shape[-1:], 1) for shape in _shapes(call))
        needed = sum(times * self.total(required) for required, times in call.needs)
        return _WAITING * self.progress(call) + self.per_row * max(rows, default=1) + needed


BUDGET = Budget()
"""The budget of a call unless the assignment sets another one."""


def _shapes(call: Call) -> list[tuple[int, ...]]:
    """The shapes of all arrays of a call; a file that a program reads is one with an element per byte."""
    read = () if call.run is None else (len(call.run.stdin), *map(len, call.run.files.values()))
    return [*(array.shape for array in calls.arrays(call)), *((size,) for size in read)]
