"""Time of kernels in Triton: on the simulator with all checks, and by Triton's interpreter.

``python tests/triton_times.py`` prints the table. A launch costs what several cost more than one, so that
starting Python, importing and compiling do not count.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

SCRIPT = Path(__file__).parent / "runner" / "triton_scripts" / "timed.py"
KERNELS = {
    "rms": "RMSNorm 64 x 4096, bfloat16",
    "recurrence": "RG-LRU 2 x 512 x 256 forward, float32, given its gates",
}
SIMULATOR = [sys.executable, "-m", "grader", "simulate", str(SCRIPT)]
INTERPRETER = [sys.executable, str(SCRIPT)]
SIMULATED, INTERPRETED = 3000, 30  # launches


def seconds(command: list[str], kernel: str, times: int, environment: dict[str, str]) -> tuple[float, float]:
    """Elapsed time, and processor time of all cores."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run([*command, kernel, str(times)], check=True, env={**os.environ, **environment})
    elapsed, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_a_launch(
    command: list[str], kernel: str, more: int, environment: dict[str, str]
) -> tuple[float, float]:
    seconds(command, kernel, 1, environment)  # compiles
    one = seconds(command, kernel, 1, environment)
    several = seconds(command, kernel, 1 + more, environment)
    return (several[0] - one[0]) / more, (several[1] - one[1]) / more


def main() -> None:
    titles = ("kernel", "simulator, all checks", "of all cores", "interpreter", "of all cores", "times")
    sys.stdout.write(f"| {' | '.join(titles)} |\n|---|--:|--:|--:|--:|--:|\n")
    for kernel, title in KERNELS.items():
        simulated = of_a_launch(SIMULATOR, kernel, SIMULATED, {})
        interpreted = of_a_launch(INTERPRETER, kernel, INTERPRETED, {"TRITON_INTERPRET": "1"})
        cells = [f"{1e3 * one:.2f} ms" for one in (*simulated, *interpreted)]
        sys.stdout.write(f"| {' | '.join((title, *cells, f'{interpreted[0] / simulated[0]:.0f}'))} |\n")


if __name__ == "__main__":
    main()
