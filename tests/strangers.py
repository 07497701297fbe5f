"""Grades kernels of people who had read neither the tests nor the judge: ``nox -s strangers -- [NAME ...]``.

``tests/strangers/manifest.json`` says of each what it answers, whether it is right, and why. A line is
printed for each whose verdict is not the one that it should get, and then how many there are of each kind.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parent / "strangers"
SEED = 5


def verdict(entry: dict[str, Any], device: str, seed: int, seconds: float) -> str:
    """Of the correctness of a kernel; NONE if the grading was stopped."""
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder, "record.json")
        command = [
            sys.executable,
            "-m",
            "grader",
            "grade",
            str(KERNELS / entry["name"]),
            "--json",
            str(record),
        ]
        command += ["--assignment", entry["assignment"], "--problem", entry["problem"]]
        command += ["--device", device, "--seed", str(seed)]
        try:
            subprocess.run(command, capture_output=True, check=False, timeout=seconds)
        except subprocess.TimeoutExpired:
            return "NONE"
        if not record.exists():
            return "NONE"
        graded = json.loads(record.read_text())["problems"]
        return next(str(each["correctness"]["verdict"]) for each in graded if each["id"] == entry["problem"])


def main() -> None:
    """Grade all, or those that are named by the beginning of their names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="beginnings of names; all if none")
    parser.add_argument("--device", default="sim")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--seconds", type=float, default=600, help="of one grading, before it is stopped")
    parser.add_argument("--jobs", type=int, default=1, help="gradings side by side")
    options = parser.parse_args()
    every = json.loads((KERNELS / "manifest.json").read_text())
    chosen = [entry for entry in every if entry["name"].startswith(tuple(options.names or [""]))]
    if not chosen:
        parser.error(f"no kernel is called so: {', '.join(options.names)}")
    counts: Counter[str] = Counter()
    with ThreadPoolExecutor(options.jobs) as pool:
        verdicts = pool.map(
            lambda entry: verdict(entry, options.device, options.seed, options.seconds), chosen
        )
        for entry, given in zip(chosen, verdicts, strict=True):
            kind = "right" if entry["right"] else "accepted" if "accepted" in entry else "wrong"
            passed = given == "PASS"
            counts[f"{kind}, {'passes' if passed else 'fails' if given == 'FAIL' else 'undecided'}"] += 1
            if kind != "accepted" and passed != entry["right"]:
                print(f"{given:10} {entry['name']}: {entry['why']}", flush=True)
    print("; ".join(f"{name}: {count}" for name, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
