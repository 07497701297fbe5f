"""The layout of an array in memory: guard zone, data, guard zone. All bytes but those of inputs are poison.

``grader.problems.dtypes`` defines the poison of each element type; it changes from call to call. Around an
input each byte is 0xFF, as on the simulator: a kernel that reads an index there gets -1 on both devices.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from grader.problems.dtypes import DTYPES, poison
from grader.records.findings import OVERRUN, Finding, facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from grader.devices.device import ArrayArgument

GUARD = 64 * 1024  # bytes before the data, and behind it and its padding to ALIGNMENT, as on the simulator
ALIGNMENT = 256


def data_bytes(argument: ArrayArgument) -> int:
    """The size of the array itself."""
    return math.prod(argument.shape) * DTYPES[argument.dtype].itemsize


def image_bytes(argument: ArrayArgument) -> int:
    """The size of the array with its guard zones."""
    return 2 * GUARD + -(-data_bytes(argument) // ALIGNMENT) * ALIGNMENT


def content(argument: ArrayArgument) -> NDArray[np.uint8]:
    """The bytes of an input array."""
    assert argument.data is not None
    stored = DTYPES[argument.dtype].storage
    return np.ascontiguousarray(argument.data, stored).reshape(-1).view(np.uint8)


def image(argument: ArrayArgument, *, again: bool = False) -> NDArray[np.uint8]:
    """The bytes of the array and its guard zones before the call; for ``again`` see ``poison``."""
    if argument.data is None:
        return poison(image_bytes(argument), DTYPES[argument.dtype].storage, again=again)
    memory = np.full(image_bytes(argument), 0xFF, np.uint8)
    memory[GUARD : GUARD + data_bytes(argument)] = content(argument)
    return memory


def unwritten(argument: ArrayArgument) -> NDArray[np.uint8]:
    """The bytes of an output before a call in another order than program order."""
    size = data_bytes(argument)
    return poison(-(-size // 4) * 4, DTYPES[argument.dtype].storage, again=True)[:size]


def array(argument: ArrayArgument, data: NDArray[np.uint8]) -> NDArray[np.generic]:
    """The bytes of an array, viewed with its element type and shape."""
    typed: NDArray[np.generic] = data.view(DTYPES[argument.dtype].storage).reshape(argument.shape)
    return typed


def overrun(
    argument: ArrayArgument, before: NDArray[np.uint8], after: NDArray[np.uint8]
) -> tuple[Finding, ...]:
    """What the guard zones of an image tell: a finding if any of them changed."""
    end = GUARD + data_bytes(argument)
    zones = {"start": slice(GUARD), "end": slice(end, None)}
    changed = [side for side, zone in zones.items() if not np.array_equal(before[zone], after[zone])]
    if not changed:
        return ()
    side = "both" if len(changed) > 1 else changed[0]
    return (Finding(OVERRUN, f"{side}_written", facts=facts(array=argument.name)),)


def strayed(before: NDArray[np.uint8], after: NDArray[np.uint8]) -> bool:
    """Whether writes to guard zones of an image may have gone beyond them: the outer half of one changed."""
    half = GUARD // 2
    return any(not np.array_equal(before[outer], after[outer]) for outer in (slice(half), slice(-half, None)))
