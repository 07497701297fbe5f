"""A worker that judges nothing, and ``dies`` or ``hangs`` when first asked for vector_add: MET HOW ..."""

from __future__ import annotations

import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from grader.batch import worker
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.judging import without_cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from grader.records.record import ProblemResult


def judged_at_once(judge: grading.ProblemJudge) -> Callable[[], ProblemResult]:
    """Stands in for checking a problem."""
    return partial(without_cases, judge.material.assignment, judge.id, Verdict.FAIL, "judged")


def main() -> None:
    met, how = Path(sys.argv[1]), sys.argv[2]
    del sys.argv[1:3]
    real = worker.answer
    grading.ProblemJudge.check = judged_at_once

    def answer(query: dict[str, Any], *rest: object) -> dict[str, Any]:
        if query["problems"] == ["vector_add"] and not met.exists():
            met.touch()
            if how == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(600)
        return real(query, *rest)

    worker.answer = answer
    worker.main()


if __name__ == "__main__":
    main()
