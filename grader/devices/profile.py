"""What Nsight Compute counts while a submission runs: bandwidth, occupancy, what warps wait for. Hints only.

The runner is started by ``ncu`` in the same sandbox as ever. Its table comes through stderr, where a
submission can print too: nothing that counts may be made of it.
"""

from __future__ import annotations

import csv
import io
import math
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CALL_SECONDS = 60.0  # for a call whose kernels run again for every few counters
END_SECONDS = 60.0  # until the table is written
PLACES = ("/usr/local/cuda/bin/ncu", "/usr/local/cuda-*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
PARTS = ("/usr/local/cuda*", "/opt/nvidia/nsight-compute")  # ncu is a script that starts what lies elsewhere
ABSENT = (
    "ncu (Nsight Compute) is neither in PATH nor below /usr/local/cuda or /opt/nvidia; it comes with the "
    "CUDA toolkit"
)
NO_IMAGE = "ncu (Nsight Compute) is not in the image of the sandbox; use another one (--sandbox)"
NO_KERNEL = "ncu saw no kernel"
WALLS = " (sandboxes may keep counters and sockets from ncu: for code that you trust, use --sandbox process)"
SHOWN_KERNELS = 8
SHOWN_NAME = 80  # characters of a kernel's
SHOWN_STALLS = 3
LEAST_STALL = 0.05  # of all waiting: less is not worth a word
_BANDWIDTH, _SHARE = "dram__bytes.sum.per_second", "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_ERROR = "==ERROR=="
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALLS = {
    "long_scoreboard": "data from global memory",
    "short_scoreboard": "data from shared memory",
    "barrier": "__syncthreads",
    "membar": "memory fences",
    "lg_throttle": "room for another global access",
    "mio_throttle": "room for another shared access",
    "math_pipe_throttle": "a free arithmetic unit",
    "wait": "an instruction of fixed latency",
    "no_instruction": "instructions",
    "branch_resolving": "a branch",
    "drain": "the last stores",
}
"""What a warp waits for, by ncu's name."""


class ProfileError(Exception):
    """Nothing was profiled; the text says why."""


@dataclass(frozen=True)
class KernelProfile:
    """One launch.

    Attributes:
        kernel: its name.
        bandwidth: bytes per second between the device's memory and its L2.
        share: of the most that the memory can do, in percent.
        occupancy: warps that were resident, in percent of those that could be.
        stalls: how often warps waited, by ``STALLS``.
    """

    kernel: str
    bandwidth: float
    share: float
    occupancy: float
    stalls: Mapping[str, float]

    @property
    def line(self) -> str:
        """One line for a report."""
        total = sum(self.stalls.values())
        worst = sorted(self.stalls, key=lambda name: -self.stalls[name])[:SHOWN_STALLS]
        waits = [
            f"{STALLS[name]} ({self.stalls[name] / total:.0%})"
            for name in worst
            if total and self.stalls[name] >= LEAST_STALL * total
        ]
        waiting = f"; warps wait for {', '.join(waits)}" if waits else ""
        return (
            f"profile of {self.kernel}: {self.bandwidth / 1e9:,.0f} GB/s ({self.share:.0f} % of the peak), "
            f"{self.occupancy:.0f} % occupancy{waiting}"
        )


def find() -> Path:
    """The ncu of this machine.

    Raises:
        ProfileError: there is none.
    """
    if found := shutil.which("ncu"):
        return Path(found).resolve()
    for place in PLACES:
        if installed := sorted(Path("/").glob(place[1:])):
            return installed[-1].resolve()
    raise ProfileError(ABSENT)


def folders(ncu: Path) -> tuple[Path, ...]:
    """What a sandbox must show for it."""
    parts = (part for pattern in PARTS for part in sorted(Path("/").glob(pattern[1:])))
    return (ncu.parent, *dict.fromkeys(part.resolve() for part in parts))


def command(ncu: Path) -> tuple[str, ...]:
    """What to put before a program; the clocks stay as they are."""
    metrics = (_BANDWIDTH, _SHARE, _OCCUPANCY, *(_STALL.format(name) for name in STALLS))
    options = ("--csv", "--page", "raw", "--print-units", "base", "--log-file", "stderr")
    return (str(ncu), "--clock-control", "none", *options, "--metrics", ",".join(metrics))


def read(text: str) -> list[KernelProfile]:
    """The launches in what ncu wrote, which other lines may surround; the first of each kernel counts."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    try:
        rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    except csv.Error:  # what a submission prints may be in it
        return []
    found: dict[str, KernelProfile] = {}
    for row in rows[1:]:  # the first one holds units
        name = (row.get("Kernel Name") or "").partition("(")[0]
        if name and name not in found and row.get(_BANDWIDTH):
            found[name] = KernelProfile(
                kernel=name[:SHOWN_NAME],
                bandwidth=_number(row, _BANDWIDTH),
                share=_number(row, _SHARE),
                occupancy=_number(row, _OCCUPANCY),
                stalls={stall: _number(row, _STALL.format(stall)) for stall in STALLS},
            )
    return list(found.values())


def lines(text: str) -> list[str]:
    """What a report says of what ncu wrote."""
    return [profile.line for profile in read(text)[:SHOWN_KERNELS]]


def reason(text: str) -> str:
    """Why ncu failed, in its own words; empty if it does not say."""
    said = (line for line in text.splitlines() if line.startswith(_ERROR))
    return next(said, "").removeprefix(_ERROR).strip()


def _number(row: Mapping[str, str | None], name: str) -> float:
    try:
        number = float((row.get(name) or "0").replace(",", ""))
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
