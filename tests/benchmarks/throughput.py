"""How many submissions an hour this machine grades, and what it is busy with meanwhile.

    python tests/benchmarks/throughput.py [--size 24] [--transformer] [--warm] [--device gpu] [--gpus N]
                                          [--seconds S] [--json F] [--out DIR]

Grades a class with ``grader batch``: half of it have a variant in one of their files, with the kernel of one
problem only, and half a mutant; all else is the reference. Build caches are empty unless ``--warm``. After S
seconds the batch is interrupted, and what it has finished counts.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import chain, cycle, islice, zip_longest
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from first_assignment import ASSIGNMENT, KERNELS, MUTANTS, VARIANTS

from grader.records import record as results

if TYPE_CHECKING:
    from collections.abc import Iterator

REFERENCE = Path(__file__).parents[2] / "reference"
FILES = ("layernorm_kernel.cu", "row.cuh", "softmax_kernel.cu")
MODEL = "transformer.py"
GRACE_SECONDS = 60.0  # for workers that were interrupted
BUSY = ("nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "--loop-ms=500")


def right() -> Iterator[tuple[str, str, str]]:
    """Name of the submission, file and text of each variant, problem by problem in turn."""
    each = [
        [(name, path) for path in sorted((VARIANTS / name).glob("*.cu")) if path.stem != "host"]
        for name in KERNELS
    ]
    for name, path in filter(None, chain.from_iterable(zip_longest(*each))):
        yield f"right-{name}-{path.stem}", KERNELS[name].file, path.read_text()


def wrong() -> Iterator[tuple[str, str, str]]:
    """The same of mutants."""
    each = [[mutant for mutant in MUTANTS if mutant.problem == name] for name in KERNELS]
    for mutant in filter(None, chain.from_iterable(zip_longest(*each))):
        yield f"wrong-{mutant.problem}-{mutant.id}", mutant.file, mutant.text(ASSIGNMENT)


def make(folder: Path, size: int, *, transformer: bool) -> None:
    """Write a class of ``size`` submissions, right and wrong ones in turn."""
    in_turn = chain.from_iterable(zip(cycle(right()), cycle(wrong())))
    for number, (name, file, text) in enumerate(islice(in_turn, size)):
        student = folder / f"{number:03}-{name}"
        student.mkdir(parents=True)
        for copied in (*FILES, *([MODEL] if transformer else [])):
            shutil.copy(REFERENCE / copied, student)
        (student / file).write_text(text)


def graded(folder: Path, out: Path, options: argparse.Namespace, environment: dict[str, str]) -> float:
    """Seconds of the batch; what it says goes to stderr."""
    command = [sys.executable, "-m", "grader", "batch", str(folder), "--out", str(out)]
    command += ["--device", options.device, "--assignment", str(ASSIGNMENT.folder)]
    command += ["--gpus", str(options.gpus)] if options.gpus else []
    began = time.monotonic()
    with subprocess.Popen(command, env=environment, stdout=sys.stderr) as running:
        try:
            running.wait(options.seconds)
        except subprocess.TimeoutExpired:
            running.send_signal(signal.SIGINT)
            running.wait(GRACE_SECONDS)
    return time.monotonic() - began


def summary(out: Path, seconds: float, processors: float, busy: list[float]) -> dict[str, Any]:
    """What is kept of a batch that took ``seconds``, and so many seconds of processor time."""
    records = {path.parent.name: results.read(path) for path in sorted(out.glob("*/result.json"))}
    problems = [problem for record in records.values() for problem in record.problems]
    return {
        "graded": len(records),
        "seconds": round(seconds, 1),
        "an hour": round(3600 * len(records) / seconds, 1),
        "processors busy": round(processors / seconds, 2),
        "GPU busy": round(fmean(busy) / 100, 3) if busy else None,
        "timed problems": sum(bool(problem.performance.cases) for problem in problems),
        "speeds": Counter(problem.performance.verdict.value for problem in problems),
        "faults": [name for name, record in records.items() if record.error],
        "submissions": {
            name: {
                "seconds": record.seconds,
                "earned": record.score.earned,
                "problems": {
                    one.id: [one.verdict.value, one.performance.verdict.value, one.performance.speedup]
                    for one in record.problems
                },
            }
            for name, record in records.items()
        },
    }


def main() -> int:
    """Grade a class, and print what it took."""
    parser = argparse.ArgumentParser(description="Measure how many submissions an hour are graded.")
    parser.add_argument("--size", type=int, default=24, help="submissions")
    parser.add_argument(
        "--transformer", action="store_true", help="each has the reference's transformer, too"
    )
    parser.add_argument("--warm", action="store_true", help="with the build caches that there are")
    parser.add_argument("--device", default="gpu", choices=("gpu", "sim"))
    parser.add_argument("--gpus", help="as ``grader batch`` takes it")
    parser.add_argument("--seconds", type=float, help="interrupt the batch then")
    parser.add_argument("--json", type=Path, metavar="F")
    parser.add_argument("--out", type=Path, help="where the records stay")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, out = Path(scratch, "class"), options.out or Path(scratch, "out")
        make(folder, options.size, transformer=options.transformer)
        environment = {**os.environ}
        if not options.warm:
            environment["XDG_CACHE_HOME"] = str(Path(scratch, "cache"))
        watch = None
        if options.device == "gpu":
            watch = subprocess.Popen(BUSY, stdout=subprocess.PIPE, text=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = graded(folder, out, options, environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = []
        if watch is not None:
            watch.terminate()
            busy = [float(line) for line in watch.communicate()[0].split()]
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        measured = summary(out, seconds, used, busy)
    for what, value in measured.items():
        if what != "submissions":
            print(f"{what:16} {dict(value) if isinstance(value, Counter) else value}")
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
