"""Stands in for a worker: LOG LIFELINE; softmax_kernel.cu says in a word how its grading ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from grader import __version__
from grader.assignments.assignment import load
from grader.records.record import GraderInfo, Points, Record, SubmissionInfo
from grader.run.identity import judging_sha256
from grader.submissions.submission import collect
from grader.submissions.trees import SubmissionError

WANTED = ("layernorm_kernel.cu", "softmax_kernel.cu")


def main() -> None:
    log, lifeline = Path(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=end_with, args=(lifeline,), daemon=True).start()
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["operation"] == "look":
            answer: dict[str, Any] = look(log, asked)
        else:
            with log.open("a") as file:
                options = " ".join(asked["options"][name] for name in ("device", "sandbox", "memory"))
                name = Path(asked["path"]).name
                file.write(f"{name} {asked['operation']} {os.getpid()} {options} {asked['seed']}\n")
            if asked["operation"] == "grade":
                sys.stdout.write(json.dumps({"doing": "timing it"}) + "\n")
            answer = {"built": {}} if asked["operation"] == "build" else {"record": grade(asked, log)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def end_with(lifeline: int) -> None:
    os.read(lifeline, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def look(log: Path, asked: dict[str, Any]) -> dict[str, Any]:
    gpu = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    broken = log.with_name(f"broken-{gpu}")
    if broken.exists():
        return {"files": WANTED, "error": broken.read_text()}
    device = asked["options"]["device"]
    kind = "sim" if device == "auto" else device
    return {"files": WANTED, "kind": kind, "name": "a device", "compiler": "nvcc 13.0"}


def grade(asked: dict[str, Any], log: Path) -> dict[str, Any]:
    try:
        with collect(Path(asked["path"]), WANTED) as submission:
            sha256, error = submission.sha256, None
            words = submission.files["softmax_kernel.cu"].read_text().split()
    except SubmissionError as reason:
        sha256, error, words = "", str(reason), ["wrong"]
    how, again = words[0], log.with_name(f"met-{Path(asked['path']).name}")
    if how == "once":  # a fault the first time
        how = "right" if again.exists() else words[1]
        again.touch()
    if how == "crowded":
        how = "fault" if company(log, Path(asked["path"]).name, wait=not again.exists()) else "right"
        again.touch()
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "bug":
        raise IndexError("of the grader")
    if how == "hangs":
        time.sleep(600)
    if how == "breaks":
        log.with_name(f"broken-{os.environ['CUDA_VISIBLE_DEVICES']}").write_text("fell off the bus")
    code = {"right": 0, "fault": 3, "breaks": 1}.get(how, 1)
    answered = how not in {"breaks", "crashes"}
    return record(asked, sha256, error, code, answered).model_dump(mode="json", by_alias=True)


def company(log: Path, name: str, *, wait: bool) -> bool:
    """Whether another submission is graded at the same time; ``wait`` for one."""
    mine = log.with_name(f"graded-now-{name}")
    mine.touch()
    end = time.monotonic() + (60 if wait else 0.5)
    while not (seen := len(list(log.parent.glob("graded-now-*"))) > 1) and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.2)  # for the other one to look
    mine.unlink()
    return seen


def record(asked: dict[str, Any], sha256: str, error: str | None, code: int, answered: bool) -> Record:
    assignment = load(asked["assignment"])
    earned = {0: 12.0, 1: 3.0}.get(code, 0.0)
    verdict = {0: "PASS", 1: "FAIL"}.get(code, "INFRA_ERROR")
    decided = 12.0 if code in {0, 1} else 0.0
    output = {"name": "o", "max_error": 0, "allowed": 1, "bad": 0, "total": 1, "first_bad": []}
    case = {"name": "c", "group": "g", "verdict": verdict, "outputs": [output] if answered else []}
    problems = [
        {
            "id": problem.id,
            "title": problem.title,
            "verdict": verdict,
            "points": {"earned": earned, "decided": decided, "possible": problem.possible},
            "message": "" if code == 0 else "no nvcc here" if code == 3 else "wrong",
            "memory": "device",
            "correctness": {"verdict": verdict, "cases": [case]},
            "performance": {"verdict": "NOT_MEASURED", "target": problem.target},
            "trust": {"verdict": "PASS"},
        }
        for problem in assignment.rules.problems
    ]
    return Record.model_validate(
        {
            "grader": GraderInfo(
                version=__version__, config_sha256=assignment.sha256, sha256=judging_sha256()
            ),
            "assignment": assignment.id,
            "submission": SubmissionInfo(name="x", sha256=sha256, files=[], error=error),
            "seed": asked["seed"],
            "started": time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
            "seconds": 1.0,
            "device": {"kind": asked["options"]["device"], "name": "a device", "compiler": "nvcc 13.0"},
            "score": Points(earned=5 * earned, decided=5 * decided, possible=100),
            "problems": problems,
            "exit_code": code,
        }
    )


if __name__ == "__main__":
    main()
