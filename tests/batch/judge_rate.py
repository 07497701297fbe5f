"""Measures how many candidates for a problem grader judge judges in a minute, and the processor time of each.

python tests/batch/judge_rate.py [PROBLEM] [--count 24] [--device sim|gpu] [--jobs N]

Half of the candidates are right, nothing is in the cache, and the start of the processes does not count. On a
machine that others use, too, the processor time says what it would do alone.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from click import echo
from make_candidates import ASSIGNMENT, candidates

from grader import Judge
from grader.run.options import GradingOptions


def processor_seconds() -> float:
    """The processor time of this process, and of all that it started and that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Judge candidates, and print the rate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("problem", nargs="?", default="row_softmax")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--sandbox", default="auto")
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    how = GradingOptions(options.device, options.sandbox)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GRADER_CACHE"] = str(Path(folder, "cache"))
        paths = candidates(options.problem, Path(folder), options.count)
        used = [processor_seconds()]
        for these in ([], paths):
            with Judge(options.problem, ASSIGNMENT, how, jobs=options.jobs) as judge:
                began, verdicts = time.monotonic(), [str(each.verdict) for each in judge.judged(these)]
                seconds = time.monotonic() - began
            used.append(processor_seconds())
    each = (used[2] - used[1] - (used[1] - used[0])) / len(paths)
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in sorted(set(verdicts)))
    echo(f"{counts}: {60 * len(paths) / seconds:.1f} a minute, {each:.1f} s of processor time each")


if __name__ == "__main__":
    main()
