"""What a sandbox costs: a job of nothing, and a submission graded in each sandbox in turn. nox -s overhead

A submission takes a job per file to compile and one per problem to run. Every grader is a process of its own,
as on the command line, and finds its builds in the cache, but with ``--compile``. Figures are medians of the
differences to ``process`` in the same round. ``--path student_template`` takes every job of a submission and
little else, so that they are not lost in the noise of seconds of simulation.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from attacks.attempt import sandboxes

from grader.records.exit_codes import ExitCode
from grader.sandbox.backends import BACKENDS
from grader.sandbox.sandbox import Job, Limits

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
JOB = Job(("/bin/true",), Limits(wall_seconds=60))


def main() -> int:
    parser = argparse.ArgumentParser(description="Time jobs and a submission in each sandbox.")
    parser.add_argument("--jobs", type=int, default=30, help="rounds of jobs")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of submissions")
    parser.add_argument("--compile", action="store_true", help="compile anew each time")
    parser.add_argument("--path", type=Path, default=ROOT / "reference", help="the submission")
    parser.add_argument("--problem", action="append", default=[], help="only this problem; repeatable")
    parser.add_argument("--sandbox", nargs="+", choices=list(BACKENDS), default=list(BACKENDS))
    options = parser.parse_args()
    chosen = [word for problem in options.problem for word in ("--problem", problem)]
    with sandboxes({"process", *options.sandbox}) as found, tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)

        def grade(name: str) -> None:
            cache = Path(folder, name)
            if options.compile:
                shutil.rmtree(cache, ignore_errors=True)
            command = [
                sys.executable,
                "-P",
                "-m",
                "grader",
                "grade",
                options.path,
                *chosen,
                "--device",
                "sim",
            ]
            environment = {**os.environ, "GRADER_CACHE": str(cache)}
            ended = subprocess.run(
                [*command, "--sandbox", name], env=environment, stdout=subprocess.DEVNULL, check=False
            )
            if ended.returncode not in {ExitCode.OK, ExitCode.POINTS_LOST}:
                raise SystemExit(f"grading in {name} ended with {ended.returncode}")

        names = [name for name in reversed(BACKENDS) if name in found]
        print("\n".join(_lines("a job", names, lambda name: found[name].run(JOB), options.jobs)))
        print("\n".join(_lines("a submission", names, grade, options.rounds)))
    return 0


def _lines(what: str, names: list[str], act: Callable[[str], object], rounds: int) -> list[str]:
    """A line per sandbox; the first round, which fills caches, does not count, and the order alternates."""

    def seconds(name: str) -> float:
        begin = time.monotonic()
        act(name)
        return time.monotonic() - begin

    orders = [names, names[::-1]] * (rounds // 2 + 1)
    taken = [{name: seconds(name) for name in order} for order in orders[: rounds + 1]][1:]
    lines = [f"{what} in process: {1000 * median(one['process'] for one in taken):.0f} ms"]
    for name in names[1:]:
        more = [1000 * (one[name] - one["process"]) for one in taken]
        least, most = min(more), max(more)
        lines.append(f"{what} in {name}: {median(more):+.0f} ms ({least:+.0f} to {most:+.0f})")
    return lines


if __name__ == "__main__":
    sys.exit(main())
