"""The generated programs whose race is in shared memory, on a GPU under compute-sanitizer's racecheck.

    python tests/simulator/racecheck.py [--seconds 200] [--jobs 16] > agreement.json

Needs nothing but Python, a GPU and the CUDA toolkit. Prints as JSON how many of the racy programs racecheck
reports, and how many of their right twins; the simulator reports all of the former and none of the latter
(``generated_sim.json``). Every program also runs plainly: a right one must leave the numbers that its twin is
compared with, time after time, and a racy one that leaves others has met its race. Without compute-sanitizer
there is only that.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import gpu_name, reports
from generated import TYPES, Generated, generate, source

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES = 3  # that each program runs plainly
MAIN = """
#include <cstdio>
#include <cstring>
int main(int count, char** names) {{
  const struct {{ const char* name; int (*run)(); }} all[] = {{ {entries} }};
  for (int n = 1; n < count; ++n)
    for (const auto& one : all)
      if (!std::strcmp(one.name, names[n])) {{
        const int error = one.run();
        std::printf("%s %d %llu\\n", one.name, error, numbers);
      }}
}}
"""


@dataclass(frozen=True)
class Said:
    """What racecheck said of a program: whether it ran at all, and how many reports there are."""

    ran: bool
    reports: int


def build(programs: Sequence[Generated], folder: Path) -> Path:
    """An executable that calls the programs which are named as its arguments."""
    file = folder / f"{programs[0].name}.cu"
    entries = ", ".join(f'{{"{program.name}", {program.name}}}' for program in programs)
    file.write_text(source(programs) + MAIN.format(entries=entries))
    built = file.with_suffix("")
    subprocess.run(["nvcc", "-O1", "-lineinfo", "-arch=native", "-o", built, file], check=True)
    return built


def numbers(executable: Path, programs: Sequence[Generated]) -> dict[str, set[str]]:
    """What each program leaves in memory, in all of its runs; an error counts as a number."""
    left: dict[str, set[str]] = {program.name: set() for program in programs}
    command = [str(executable), *(program.name for program in programs)]
    for _ in range(TIMES):
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        for line in done.stdout.splitlines():
            name, error, sums = line.split()
            left[name].add(sums if error == "0" else f"error {error}")
    return left


def racecheck(executable: Path, program: Generated, deadline: float) -> Said:
    """Run one program under racecheck, unless the time is up."""
    left = deadline - time.monotonic()
    if left <= 0:
        return Said(ran=False, reports=0)
    command = ["compute-sanitizer", "--tool", "racecheck", str(executable), program.name]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=left)
    except subprocess.TimeoutExpired:
        return Said(ran=False, reports=0)
    found = reports("racecheck", done.stdout, executable.with_suffix(".cu").name)
    return Said(f"{program.name} 0 " in done.stdout, len(found))


def by_scope(programs: Sequence[Generated], chosen: set[str]) -> dict[str, int]:
    """How many of the programs are chosen, by scope."""
    return dict(Counter(program.scope for program in programs if program.name in chosen))


def agreement(seconds: float, jobs: int) -> dict[str, object]:
    """What a GPU, and racecheck where it is there, say of the programs, as JSON."""
    deadline = time.monotonic() + seconds
    racy = [program for program in generate() if program.shared and program.kind]
    right = [replace(program, kind="") for program in racy]
    everything = [*racy, *right]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        parts = [[program for program in everything if program.size == size] for size in TYPES]
        executables = dict(zip(TYPES, pool.map(lambda part: build(part, Path(folder)), parts), strict=True))
        left: dict[str, set[str]] = {}
        for part in parts:
            left |= numbers(executables[part[0].size], part)
        changed = {
            program.name for program in racy if left[program.name] != left[replace(program, kind="").name]
        }
        found: dict[str, object] = {
            "gpu": gpu_name(),
            "racy": len(racy),
            "right": len(right),
            "right programs with several results": [one.name for one in right if len(left[one.name]) > 1],
            "racy programs with other numbers": by_scope(racy, changed),
        }
        if shutil.which("compute-sanitizer") is None:
            return {**found, "compute-sanitizer": "not there: only the numbers were compared"}
        said = dict(
            zip(
                (program.name for program in everything),
                pool.map(lambda one: racecheck(executables[one.size], one, deadline), everything),
                strict=True,
            )
        )
    reported = {name for name, one in said.items() if one.ran and one.reports}
    not_run = [name for name, one in said.items() if not one.ran]
    return {
        **found,
        "compute-sanitizer": "racecheck",
        "not run": not_run,
        "reported of the racy": by_scope(racy, reported),
        "silent of the racy": [
            one.name for one in racy if one.name not in reported and one.name not in not_run
        ],
        "reported of the right": [one.name for one in right if one.name in reported],
    }


def main() -> int:
    """Print the agreement."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=200, help="no program begins later")
    parser.add_argument("--jobs", type=int, default=16, help="programs at a time")
    arguments = parser.parse_args()
    json.dump(agreement(arguments.seconds, arguments.jobs), sys.stdout, indent=1)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
