"""Everything about the language model that only a GPU can tell, as records in one folder.

    python tests/benchmarks/transformer_gpu.py OUT [--quick]

Grades problem 5 of the reference (``grade.json``), trains an epoch with the kernels and without
(``fused.json``, ``unfused.json``), and compares the two in turn with an Amdahl table per module
(``comparison.json``). ``summary.json`` says what came out and what failed; the rest runs on in any case.
``tests/benchmarks/plot_training.py`` draws the records.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
TRAIN = ROOT / "student_template" / "train_translation.py"
SECONDS = {"grade": 420, "fused": 420, "unfused": 420, "comparison": 540}
QUICK = ("--sentences", "20000")


def commands(out: Path, *, quick: bool) -> dict[str, list[str]]:
    """The commands by the names of their records."""
    train = [sys.executable, str(TRAIN), "--folder", str(ROOT / "reference"), *(QUICK if quick else ())]
    grade = [sys.executable, "-m", "grader", "grade", str(ROOT / "reference"), "--problem", "transformer"]
    return {
        "grade": [*grade, "--device", "gpu", "--json", str(out / "grade.json")],
        "fused": [*train, "--use-fused-kernel", "True", "--json", str(out / "fused.json")],
        "unfused": [*train, "--use-fused-kernel", "False", "--json", str(out / "unfused.json")],
        "comparison": [*train, "--compare", "--json", str(out / "comparison.json")],
    }


def run(name: str, command: list[str], out: Path) -> dict[str, object]:
    """Run one command; its words go to ``NAME.log``."""
    begin = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS[name], check=False
        )
        code, said = done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        code, said = None, f"not done within {SECONDS[name]} s\n{error.stdout or ''}"
    (out / f"{name}.log").write_text(said)
    print(f"== {name}: exit code {code}, {time.monotonic() - begin:.0f} s\n{said[-3000:]}", flush=True)
    return {"exit_code": code, "seconds": round(time.monotonic() - begin, 1)}


def figures(out: Path) -> dict[str, object]:
    """The numbers that matter, from the records that are there."""
    files = [path for path in out.glob("*.json") if path.stem != "summary"]
    records = {path.stem: json.loads(path.read_text()) for path in files}
    found: dict[str, object] = {}
    if grade := records.get("grade"):
        (problem,) = grade["problems"]
        found["points"] = problem["points"]
        speed = problem["performance"]
        found["performance"] = {key: speed[key] for key in ("verdict", "speedup", "interval", "message")}
    for way in ("fused", "unfused"):
        if epoch := records.get(way):
            found[way] = {key: epoch[key] for key in ("seconds", "tokens_per_second", "unigram")}
            found[way] |= {"first_loss": epoch["losses"][0], "last_loss": epoch["losses"][-1]}
    if comparison := records.get("comparison"):
        found["comparison"] = {key: value for key, value in comparison.items() if key != "losses"}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the language model on a GPU.")
    parser.add_argument("out", type=Path, help="folder for the records")
    parser.add_argument("--quick", action="store_true", help="a short text, to see whether all of it runs")
    given = parser.parse_args()
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    ended = {name: run(name, command, out) for name, command in commands(out, quick=given.quick).items()}
    summary = {"runs": ended, **figures(out)}
    (out / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(json.dumps(summary, indent=1))
    return 0 if all(one["exit_code"] == 0 for one in ended.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
