"""Kills a batch at random moments and starts it again, until it is done; then compares with one left alone.

    python tests/batch/kill.py SUBMISSIONS OUT [--kills 100] [--seconds 8] [--seed 0]

Nothing may be graded again once its record exists, no file may be cut off at any moment, and in the end every
record must be that of the batch left alone, times aside. OUT gets the results of both.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import csv
import itertools
import json
import random
import subprocess
import sys
from pathlib import Path

ASSIGNMENT = "llm_systems_3"
CLASS_SEED = 7
_TIMES = {"started", "seconds", "cached"}


def batch(submissions: Path, out: Path, assignment: str = ASSIGNMENT) -> subprocess.Popen[bytes]:
    """A batch on the sim, with a seed so that others can be compared with it."""
    command = [sys.executable, "-P", "-m", "grader", "batch", str(submissions), "--out", str(out)]
    command += ["--device", "sim", "--seed", str(CLASS_SEED), "--assignment", assignment]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def written(out: Path) -> dict[str, bytes]:
    """Every record as it is now, byte for byte."""
    return {path.parent.name: path.read_bytes() for path in out.glob("*/result.json")}


def cut_off(out: Path) -> list[str]:
    """The files that are not whole."""
    paths = [path for path in out.rglob("*.*") if not path.name.startswith(".")]
    return [f"{path}: cut off" for path in paths if not _whole(path.suffix, path.read_text())]


def _whole(suffix: str, text: str) -> bool:
    if suffix == ".json":
        try:
            json.loads(text)
        except ValueError:
            return False
        return True
    if suffix == ".csv":
        return text.endswith("\n") and len({len(row) for row in csv.reader(text.splitlines())}) == 1
    return text.endswith("</html>")


def killed(
    submissions: Path, out: Path, kills: int, seconds: float, seed: int, assignment: str = ASSIGNMENT
) -> tuple[int, list[str]]:
    """Kill and restart; returns how many batches were run to their end, and what went wrong.

    ``out`` holds the batch left ``alone``; the others write beside it, to ``killed-1``, ``killed-2``, ... One
    that ends before there were ``kills`` is followed by another. None lives longer than ``seconds``.
    """
    moments, wrong, met = random.Random(seed), [], 0
    for number in itertools.count(1):
        place, code = out / f"killed-{number}", None
        while code is None:
            before = written(place)
            running = batch(submissions, place, assignment)
            try:
                code = running.wait(moments.uniform(0, seconds) if met < kills else None)
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
                met += 1
            after = written(place)
            wrong += [f"{name}: graded again" for name in before if after.get(name) != before[name]]
            wrong += cut_off(place)
        if code != 0:
            wrong.append(f"{place}: the batch ended with {code}")
        wrong += [f"{place}: {line}" for line in differences(out / "alone", place)]
        if met >= kills or wrong:
            return number, wrong
    raise AssertionError


def differences(alone: Path, other: Path) -> list[str]:
    """What differs, times aside."""
    right, got = written(alone), written(other)
    wrong = [f"{name}: no record, or one too many" for name in right.keys() ^ got.keys()]
    both = sorted(right.keys() & got.keys())
    wrong += [f"{name}: another record" for name in both if timeless(right[name]) != timeless(got[name])]
    if (alone / "gradebook.csv").read_bytes() != (other / "gradebook.csv").read_bytes():
        wrong.append("another gradebook")
    return wrong


def timeless(content: bytes) -> object:
    """A record without what depends on when it was made and on how long that took."""

    def without_times(pairs: list[tuple[str, object]]) -> dict[str, object]:
        return {name: value for name, value in pairs if name not in _TIMES}

    return json.loads(content, object_pairs_hook=without_times)


def main() -> int:
    parser = argparse.ArgumentParser(description="Kill a batch over and over.")
    parser.add_argument("submissions", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=8, help="the longest life of a batch")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    options.out.mkdir(parents=True)
    if batch(options.submissions, options.out / "alone").wait() != 0:
        print("the batch that was left alone failed")
        return 1
    ended, wrong = killed(options.submissions, options.out, options.kills, options.seconds, options.seed)
    print("\n".join([*wrong, f"killed {options.kills} times in {ended} batches, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
