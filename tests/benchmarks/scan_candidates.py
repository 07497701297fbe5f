"""Versions of the RG-LRU's reference that may be faster: the files of each, and what is expected of it.

None of them is in ``assignments/rglru/reference`` before it has been measured. ``assignments_gpu.py
--candidates`` times them beside it; the outcome goes into docs/rglru.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = Path(__file__).with_name("rglru")
REFERENCE = Path(__file__).parents[2] / "assignments" / "rglru" / "reference"
SOURCE = "rglru_kernel.cu"

GATES = (
    "__device__ inline float sigmoid(float x)",
    "constexpr float EIGHT",
    '#include "gates.cuh"\n\n',
)
SCAN = ("// The scan over the groups of a tile.", "", '#include "one_warp.cuh"\n')
"""What is cut out of a file, from the first text up to the second or the end, and what takes its place."""


def edited(file: str, begin: str, end: str, new: str) -> str:
    """A file of the reference with another text in one place.

    Raises:
        ValueError: there is no such place, or there are several.
    """
    text = (REFERENCE / file).read_text()
    before, found, rest = text.partition(begin)
    if not found or begin in rest or (end and rest.count(end) != 1):
        raise ValueError(f"{file} has not one place from {begin!r} to {end!r}")
    return before + new + (end + rest.partition(end)[2] if end else "")


def candidates() -> Mapping[str, Mapping[str, str]]:
    """The files of each candidate by name, of which ``SOURCE`` is the one to compile."""
    own = {path.name: path.read_text() for path in sorted(FOLDER.iterdir())}
    return {
        "one warp": own | {SOURCE: edited(SOURCE, *GATES), "scan.cuh": edited("scan.cuh", *SCAN)},
        "pipelined": own | {SOURCE: own["pipelined.cu"]},
        "pipelined, 256 threads": own | {SOURCE: own["pipelined_256.cu"]},
        "pipelined, 64 channels": own | {SOURCE: own["pipelined_64.cu"]},
    }
