"""How busy a batch keeps a GPU, and whether each submission gets by itself the points that it got there.

    python tests/batch/make_class.py make CLASS --size 40
    python tests/batch/busy.py CLASS OUT [--assignment ID] [--device gpu]

Ten times a second it looks whether somebody uses the GPU, alone or beside others, and whether a compiler
runs. Then every submission is
graded alone, in one process, with what the batch has compiled.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.assignment import load
from grader.processes import locks
from grader.records import record as results
from grader.run import grading
from grader.run.bench import Bench
from grader.run.options import GradingOptions
from grader.submissions.discovery import discover

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grader.assignments.assignment import Assignment
    from grader.records.record import Record

COMPILERS = {"nvcc", "cudafe++", "cc1plus", "cicc", "ptxas", "fatbinary", "nvlink"}
EVERY = 0.1  # seconds
SEED = 7


@dataclass(frozen=True)
class Look:
    """One look at the machine."""

    held: bool
    building: bool


def look() -> Look:
    """Whether somebody uses a GPU, and whether a compiler runs."""
    held = [line for line in Path("/proc/locks").read_text().splitlines() if "->" not in line]
    return Look(
        held=any(f":{file} " in lock for file in _files() for lock in held),
        building=bool(COMPILERS & set(_running())),
    )


def _files() -> Iterator[int]:
    """The inodes of the locks of all GPUs."""
    for path in locks.folder().glob("gpu-*"):
        if path.suffix != ".gate":
            yield path.stat().st_ino


def _running() -> Iterator[str]:
    for path in glob("/proc/[0-9]*/comm"):  # noqa: PTH207
        with suppress(FileNotFoundError, ProcessLookupError):
            yield Path(path).read_text().strip()


@contextmanager
def looking() -> Iterator[list[Look]]:
    """Looks at the machine as long as it is open."""
    looks: list[Look] = []
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(EVERY):
            looks.append(look())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield looks
    finally:
        ended.set()
        thread.join()


def alone(folder: Path, assignment: Assignment, device: str) -> Iterator[tuple[str, Record]]:
    """Every submission graded by itself."""
    bench = Bench(remembers=True, problems_at_once=1)
    with tempfile.TemporaryDirectory() as laid_out:
        for entry in discover(folder, grading.graded_files(assignment)).entries:
            path = entry.lay_out(Path(laid_out))
            problems = tuple(problem.id for problem in assignment.rules.problems)
            request = grading.GradingRequest(path, assignment, problems, GradingOptions(device), seed=SEED)
            yield entry.name, grading.grade(request, bench=bench)


def points(record: Record) -> list[tuple[str, str, float]]:
    """What must be the same: verdict and points of every problem."""
    return [(problem.id, problem.verdict, problem.points.earned) for problem in record.problems]


def main() -> int:
    parser = argparse.ArgumentParser(description="Watch a batch, and grade its submissions one by one.")
    parser.add_argument("folder", type=Path, metavar="CLASS", help="what make_class.py made")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--assignment", default="llm_systems_3")
    parser.add_argument("--device", choices=("gpu", "sim"), default="gpu")
    options = parser.parse_args()
    submissions, began = options.folder / "submissions", time.monotonic()
    command = [sys.executable, "-m", "grader", "batch", str(submissions), "--out", str(options.out)]
    command += ["--assignment", options.assignment, "--device", options.device, "--seed", str(SEED)]
    with looking() as looks:
        ended = subprocess.run(command, stdout=subprocess.DEVNULL, check=False).returncode
    if ended:
        raise SystemExit(f"the batch ended with {ended}")
    held, building = (sum(getattr(one, name) for one in looks) for name in ("held", "building"))
    either = sum(one.held or one.building for one in looks)
    print(f"batch: {time.monotonic() - began:.0f} s")
    print(f"device held {held / len(looks):.1%}, building {building / len(looks):.1%} of the time, ", end="")
    print(f"one or the other {either / len(looks):.1%}")
    began, count, wrong = time.monotonic(), 0, []
    for name, record in alone(submissions, load(options.assignment), options.device):
        there, here = points(results.read(options.out / name / "result.json")), points(record)
        count += 1
        if here != there:
            wrong.append(f"{name}: {there} in the batch, {here} alone")
    print("\n".join(wrong))
    print(f"one by one: {count} in {time.monotonic() - began:.0f} s; {len(wrong)} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
