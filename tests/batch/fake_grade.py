"""Stands in for ``grader grade``: LOG PATH --json FILE ...; softmax_kernel.cu says in a word how it ends."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from grader import __version__
from grader.assignments.assignment import load
from grader.results import GraderInfo, Points, Record, SubmissionInfo, write
from grader.submission import SubmissionError, collect

WANTED = ("layernorm_kernel.cu", "softmax_kernel.cu")


def main() -> int:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    log, path, *options = sys.argv[1:]
    options.remove("--quiet")
    chosen = dict(zip(options[::2], options[1::2], strict=True))
    with Path(log).open("a") as file:
        file.write(f"{Path(path).name} {' '.join(options[2:])}\n")
    try:
        with collect(Path(path), WANTED) as submission:
            content = {name: path.read_bytes() for name, path in submission.files.items()}
            sha256, error = submission.sha256, None
    except SubmissionError as reason:
        content, sha256, error = {}, "", str(reason)
    how = content.get("softmax_kernel.cu", b"wrong").decode().split()[0]
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "bug":
        sys.stderr.write("Traceback (most recent call last):\nIndexError: of the grader\n")
        return 4
    if how == "garbage":
        Path(chosen["--json"]).write_text("{")
        return 0
    if how == "hangs":
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            how = "interrupted"
    code = {"right": 0, "fault": 3, "interrupted": 130}.get(how, 1)
    write(record(chosen, sha256, error, code), Path(chosen["--json"]))
    return code


def record(options: dict[str, str], sha256: str, error: str | None, code: int) -> Record:
    assignment = load(options["--assignment"])
    earned = {0: 12.0, 1: 3.0}.get(code, 0.0)
    verdict = {0: "PASS", 1: "FAIL"}.get(code, "INFRA_ERROR")
    decided = 12.0 if code in {0, 1} else 0.0
    problems = [
        {
            "id": problem.id,
            "title": problem.title,
            "verdict": verdict,
            "points": {"earned": earned, "decided": decided, "possible": problem.possible},
            "message": "" if code == 0 else "no nvcc here" if code == 3 else "wrong",
            "memory": "device",
            "correctness": {"verdict": verdict, "cases": [{"name": "c", "group": "g", "verdict": verdict}]},
            "performance": {"verdict": "NOT_MEASURED", "target": problem.target},
            "trust": {"verdict": "PASS"},
        }
        for problem in assignment.problems
    ]
    return Record.model_validate(
        {
            "grader": GraderInfo(version=__version__, config_sha256=assignment.sha256),
            "assignment": assignment.id,
            "submission": SubmissionInfo(name="x", sha256=sha256, files=[], error=error),
            "seed": int(options.get("--seed", "5")),
            "started": "2026-01-01T00:00:00+00:00",
            "seconds": 1.0,
            "device": {"kind": options["--device"], "name": "a device"},
            "score": Points(earned=5 * earned, decided=5 * decided, possible=100),
            "problems": problems,
            "exit_code": code,
        }
    )


if __name__ == "__main__":
    sys.exit(main())
