"""How good verdicts of processes that end when they are clear are, on a machine whose speed is known.

    python tests/judge/timing/simulate.py [--gradings N]

No GPU is needed. Prints, for kernels as fast as the baseline and up to 5 % slower or faster, at the target 1:
the verdicts, the blocks of a grading, and how often the interval that the record shows holds the truth.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import math
import random
from collections import Counter
from statistics import fmean

from simulated_machine import graded

from grader.judge.timing.statistics import interval, pooled

SPEEDUPS = (0.95, 0.97, 0.98, 0.985, 0.99, 1.0, 1.01, 1.015, 1.02, 1.03, 1.05)
APART = (0.0, 0.001, 0.005)  # CV of processes: of an ideal machine, of most H100s, of the worst seen


def row(speedup: float, apart: float, gradings: int) -> str:
    """What ``gradings`` of a kernel come to."""
    source, told, blocks, covered = random.Random(f"{speedup} {apart}"), Counter[str](), [], 0
    for _ in range(gradings):
        verdict, processes = graded(source, speedup, 1.0, until_clear=True, apart=apart)
        told[verdict.value] += 1
        blocks.append(sum(len(process.blocks) for process in processes))
        shown = interval(pooled(processes).values)
        covered += shown.low <= math.log(speedup) <= shown.high
    verdicts = ", ".join(f"{verdict} {count}" for verdict, count in sorted(told.items()))
    return f"| {speedup:g} | {apart:.1%} | {verdicts} | {fmean(blocks):.0f} | {covered / gradings:.1%} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Simulate gradings of kernels whose speed is known.")
    parser.add_argument("--gradings", type=int, default=200)
    options = parser.parse_args()
    print("| speedup | processes differ by | verdicts | blocks | interval holds it |\n|--:|--:|---|--:|--:|")
    for apart in APART:
        for speedup in SPEEDUPS:
            print(row(speedup, apart, options.gradings), flush=True)


if __name__ == "__main__":
    main()
