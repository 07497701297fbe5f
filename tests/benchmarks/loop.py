"""What a grading on the simulator costs: a first one, the whole reference, and a problem that is saved again.

    python tests/benchmarks/loop.py --rounds 3
    python tests/benchmarks/loop.py --first

For a first grading nothing was built. For the others everything was, as each round meets one of two versions
of a file that differ in a comment.
Processor time is that of the user and of the kernel in all processes of a grading together, which other load
hardly changes. The time on the clock means something on an idle machine only. Of each the smallest counts.
"""
# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.assignment import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from grader.assignments.assignment import Assignment

NAIVE = Path(__file__).parent / "naive"
"""Right kernels of the first assignment that a beginner would write."""
VERSIONS = 2
OPTIONS = ("--device", "sim", "--seed", "1", "--quiet")
COMMENT = {".cu": "//", ".py": "#"}
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Of one grading: seconds of processor time, and on the clock."""

    processor: float
    clock: float


def cost(work: Callable[[], None], used: Callable[[], float]) -> Cost:
    """What ``work`` costs, by the processor time that is ``used`` before and behind it."""
    before, began = used(), time.monotonic()
    work()
    return Cost(used() - before, time.monotonic() - began)


def smallest(costs: Sequence[Cost]) -> Cost:
    return Cost(min(one.processor for one in costs), min(one.clock for one in costs))


def command(folder: Path, assignment: Assignment, *options: str) -> list[str]:
    named = "--assignment", str(assignment.folder)
    return [sys.executable, "-m", "grader", "grade", str(folder), *named, *OPTIONS, *options]


def whole(folder: Path, assignment: Assignment, rounds: int) -> Cost:
    """All problems, in a process of their own; the first round builds."""

    def work() -> None:
        subprocess.run(command(folder, assignment), stdout=subprocess.DEVNULL, check=True)

    def used() -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.ru_utime + ended.ru_stime

    return smallest([cost(work, used) for _ in range(rounds + 1)][1:])


def first(folder: Path, assignment: Assignment) -> Cost:
    """A grading by somebody who has never graded before: with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "GRADER_CACHE": cache}

        def work() -> None:
            line = command(folder, assignment)
            subprocess.run(line, stdout=subprocess.DEVNULL, env=environment, check=False)

        def used() -> float:
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            return ended.ru_utime + ended.ru_stime

        return cost(work, used)


def again(folder: Path, assignment: Assignment, problem: str, rounds: int) -> Cost:
    """One problem, from the moment that its file is saved to its score; the first rounds build."""
    file = folder / assignment.problems[problem].file
    text = file.read_text()
    with watched(command(folder, assignment, "--watch", "--fast", "--problem", problem)) as (score, used):
        score()
        costs = []
        for number in range(VERSIONS + rounds):
            saved = f"{text}{COMMENT[file.suffix]} {number % VERSIONS}\n"

            def work(saved: str = saved) -> None:
                file.write_text(saved)
                score()

            costs.append(cost(work, used))
    file.write_text(text)
    return smallest(costs[VERSIONS:])


@contextmanager
def watched(line: Sequence[str]) -> Iterator[tuple[Callable[[], None], Callable[[], float]]]:
    """A process that stays: what waits for its next score, and the processor time that it has used."""
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def score() -> None:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Score:")

    def used() -> float:
        fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / TICKS  # its own, and that of the processes that have ended

    try:
        yield score, used
    finally:
        process.terminate()
        process.wait()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description="Measure what a grading on the simulator costs.")
    parser.add_argument("--assignment", default="llm_systems_3", metavar="ID|FOLDER")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument(
        "--first", action="store_true", help="first gradings of the template and of naive kernels alone"
    )
    options = parser.parse_args(arguments)
    assignment = load(options.assignment)
    print(f"{'':24}{'processor':>11}{'clock':>9}")

    def show(name: str, found: Cost) -> None:
        print(f"{name:24}{found.processor:9.2f} s{found.clock:7.2f} s", flush=True)

    if options.first:
        show("the template, first", first(assignment.template, assignment))
        show("naive kernels, first", first(NAIVE, assignment))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "reference")
        shutil.copytree(assignment.reference, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
        show("the whole reference", whole(folder, assignment, options.rounds))
        for problem in assignment.problems:
            show(f"{problem} again", again(folder, assignment, problem, options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
