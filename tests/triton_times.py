"""Processor time of kernels in Triton: on the simulator with all checks, and by Triton's interpreter.

``python tests/triton_times.py`` prints the table. A launch costs what several cost more than one, so that
starting Python, importing and compiling do not count.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parent / "runner" / "triton_scripts" / "timed.py"
KERNELS = {
    "rms": "RMSNorm 64 x 4096, bfloat16",
    "recurrence": "RG-LRU 2 x 512 x 256 forward, float32, given its gates",
}
SIMULATOR = [sys.executable, "-m", "grader", "simulate", str(SCRIPT)]
INTERPRETER = [sys.executable, str(SCRIPT)]


def processor_seconds(command: list[str], kernel: str, times: int, environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, kernel, str(times)], check=True, env={**os.environ, **environment})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def of_a_launch(command: list[str], kernel: str, more: int, environment: dict[str, str]) -> float:
    processor_seconds(command, kernel, 1, environment)  # compiles
    one = processor_seconds(command, kernel, 1, environment)
    return (processor_seconds(command, kernel, 1 + more, environment) - one) / more


def main() -> None:
    sys.stdout.write("| kernel | simulator, all checks | interpreter | times |\n|---|---|---|---|\n")
    for kernel, title in KERNELS.items():
        simulated = of_a_launch(SIMULATOR, kernel, 200, {})
        interpreted = of_a_launch(INTERPRETER, kernel, 10, {"TRITON_INTERPRET": "1"})
        cells = (title, f"{simulated:.4f} s", f"{interpreted:.2f} s", f"{interpreted / simulated:.0f}")
        sys.stdout.write(f"| {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
