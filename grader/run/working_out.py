"""Works out what is right for the cases of a problem, in processes of its own, into files for the judge.

Each is ``python -m grader.run.working_out ASSIGNMENT PROBLEM SEED ORDERS FOLDER FIRST STEP``, which ends with
its stdin, and runs no code of a submission. In the judge, the thousands of small operations of an oracle
would take turns with the devices for Python's interpreter.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from grader.assignments.assignment import load
from grader.devices.device import Schedule
from grader.judge.correctness.cases import work_out
from grader.judge.correctness.remembered import remembered
from grader.judge.correctness.shared import SharedArrays
from grader.problems.threads import keep_to_one_thread
from grader.processes import leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from grader.assignments.assignment import Assignment
    from grader.problems.problem import Problem

PROCESSES = 2


@contextmanager
def worked_out_beside(
    assignment: Assignment, problem: Problem, seed: int, schedules: Sequence[Schedule]
) -> Iterator[Problem]:
    """``problem``, which remembers what others work out for its cases and ``schedules`` while this is open.

    They begin with the first cases; whoever comes to a case first works it out.
    """
    orders = ",".join(schedule.name for schedule in schedules)
    with tempfile.TemporaryDirectory(prefix=leftovers.prefix()) as folder:
        words = [str(assignment.folder), problem.id, str(seed), orders, folder]
        others = [
            subprocess.Popen(
                # -P: nothing is imported from the folder where the grader was started, such as a submission.
                [sys.executable, "-P", "-m", __name__, *words, str(number), str(PROCESSES)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # what they cannot work out, the judge does
            )
            for number in range(PROCESSES)
        ]
        try:
            yield _sharing(problem, folder)
        finally:
            for other in others:
                other.kill()
                other.communicate()


def _sharing(problem: Problem, folder: str) -> Problem:
    return remembered(problem, None, SharedArrays(Path(folder)), problem.id)


def main(words: Sequence[str]) -> None:
    """Work out every ``STEP``-th case from the ``FIRST``."""
    place, name, seed, orders, folder, first, step = words
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    problem = load(place).problems[name]
    keep_to_one_thread()
    cases = problem.cases(int(seed))[int(first) :: int(step)]
    work_out(_sharing(problem, folder), cases, [Schedule[order] for order in orders.split(",")], ended.is_set)


if __name__ == "__main__":
    main(sys.argv[1:])
