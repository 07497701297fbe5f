"""Profiles a submission with Nsight Compute: bandwidth, occupancy and stall reasons of its kernels, as hints.

``ncu`` starts the runner in the usual sandbox and writes its table to stderr, where the submission can print
too. So the profile must never change points or a verdict.
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

CALL_SECONDS = 60.0  # time limit of a call, whose kernels run once for every few counters
END_SECONDS = 60.0  # time limit for writing the table
PLACES = ("/usr/local/cuda/bin/ncu", "/usr/local/cuda-*/bin/ncu", "/opt/nvidia/nsight-compute/*/ncu")
PARTS = ("/usr/local/cuda*", "/opt/nvidia/nsight-compute")  # ncu is a script that starts programs in these
ABSENT = (
    "ncu (Nsight Compute) is neither in PATH nor below /usr/local/cuda or /opt/nvidia; it comes with the "
    "CUDA toolkit"
)
NO_IMAGE = "ncu (Nsight Compute) is not in the image of the sandbox; use another one (--sandbox)"
NO_KERNEL = "ncu saw no kernel"
WALLS = " (a sandbox may hide counters and sockets from ncu: for code that you trust, use --sandbox process)"
SHOWN_KERNELS = 8
SHOWN_NAME = 80  # characters of a kernel's name
SHOWN_STALLS = 3
LEAST_STALL = 0.05  # a stall reason with a smaller share of all waiting is not shown
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
    """The profile of one launch.

    Attributes:
        kernel: name of the kernel.
        bandwidth: bytes per second between the device's memory and its L2.
        share: bandwidth in percent of the memory's peak.
        occupancy: resident warps, in percent of the most that can be resident.
        stalls: how often warps waited, by the names in ``STALLS``.
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
    """The path of ncu on this machine.

    Raises:
        ProfileError: there is none.
    """
    if in_path := shutil.which("ncu"):
        return Path(in_path).resolve()
    for pattern in PLACES:
        if installed := sorted(Path("/").glob(pattern[1:])):
            return installed[-1].resolve()
    raise ProfileError(ABSENT)


def folders(ncu: Path) -> tuple[Path, ...]:
    """The folders that a sandbox must show to ``ncu``."""
    parts = (part for pattern in PARTS for part in sorted(Path("/").glob(pattern[1:])))
    return (ncu.parent, *dict.fromkeys(part.resolve() for part in parts))


def command(ncu: Path) -> tuple[str, ...]:
    """The start of a command line that profiles a program; ncu does not change the clocks."""
    metrics = (_BANDWIDTH, _SHARE, _OCCUPANCY, *(_STALL.format(name) for name in STALLS))
    options = ("--csv", "--page", "raw", "--print-units", "base", "--log-file", "stderr")
    return (str(ncu), "--clock-control", "none", *options, "--metrics", ",".join(metrics))


def read(text: str) -> list[KernelProfile]:
    """The first launch of each kernel in ncu's output, which may contain other lines too."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    try:
        rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    except csv.Error:  # the submission may have printed into it
        return []
    profiles: dict[str, KernelProfile] = {}
    for row in rows[1:]:  # the first one holds units
        name = (row.get("Kernel Name") or "").partition("(")[0]
        if name and name not in profiles and row.get(_BANDWIDTH):
            profiles[name] = KernelProfile(
                kernel=name[:SHOWN_NAME],
                bandwidth=_number(row, _BANDWIDTH),
                share=_number(row, _SHARE),
                occupancy=_number(row, _OCCUPANCY),
                stalls={stall: _number(row, _STALL.format(stall)) for stall in STALLS},
            )
    return list(profiles.values())


def lines(text: str) -> list[str]:
    """The lines for a report from ncu's output."""
    return [profile.line for profile in read(text)[:SHOWN_KERNELS]]


def reason(text: str) -> str:
    """The first error message of ncu; empty if there is none."""
    errors = (line for line in text.splitlines() if line.startswith(_ERROR))
    return next(errors, "").removeprefix(_ERROR).strip()


def _number(row: Mapping[str, str | None], name: str) -> float:
    try:
        number = float((row.get(name) or "0").replace(",", ""))
    except ValueError:
        return 0.0
    return number if math.isfinite(number) else 0.0
