"""Programs are timed beside the reference in turn: by whole processes, or by the region that they print."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pytest

from grader.devices import programs
from grader.devices.device import Answer, Status
from grader.devices.runner import LIMITS
from grader.judge.timing import speed
from grader.judge.timing.measure import PRECISE
from grader.judge.timing.processes import ProgramTiming, measure_programs, seconds_of
from grader.judge.timing.statistics import Goal
from grader.problems.program import STDOUT, Run, Words, program
from grader.records.record import PerformanceResult
from grader.records.verdict import Verdict
from grader.sandbox.process import ProcessSandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from grader.devices.device import Call
    from grader.problems.problem import Case

REGION = r"kernels: (?P<ms>[\d.]+) ms"


def run(case: Case) -> Run:
    return Run(expected={STDOUT: Words(f"{case.seed % 1000}")}, arguments=(str(case.seed % 1000),))


PROBLEM = program(
    id="sum",
    file="sum.cu",
    run=run,
    sizes={"small": [{"n": 1}]},
    timed=[{"n": 100}, {"n": 200}],
    ignored=("^kernels",),
)
IN_REGION = replace(PROBLEM, region=REGION)


class Program:
    """A session in which a program takes as long as it is told, and notes who runs in which order."""

    def __init__(self, name: str, order: list[str], seconds: float, **changes: Any) -> None:  # noqa: ANN401
        self.name, self.order, self.seconds = name, order, seconds
        self.changes = changes
        self.contents: list[str] = []

    def run(self, call: Call) -> Answer:
        self.order.append(self.name)
        assert call.run is not None
        self.contents.append(call.run.arguments[0])
        drift = 1 + 0.01 * len(self.order)  # of the machine, which gets slower all the time
        region = self.changes.get("region", 1e-3)
        text = f"{call.run.arguments[0]}\nkernels: {region * 1e3} ms\n"
        answer = Answer(Status.RETURNED, files={STDOUT: text.encode()}, seconds=self.seconds * drift)
        return replace(answer, **{k: v for k, v in self.changes.items() if k != "region"})

    def close(self) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def timing(
    submission: float = 0.1, changed: dict[str, Any] | None = None, reference: dict[str, Any] | None = None
) -> tuple[ProgramTiming, list[str]]:
    order: list[str] = []
    sessions = {
        "A": Program("A", order, 0.2, **(reference or {})),
        "B": Program("B", order, submission, **(changed or {})),
    }
    return ProgramTiming(PROBLEM, sessions, 1, 1.0, lambda _text: None), order


@pytest.mark.parametrize(
    ("submission", "target", "verdict"),
    [(0.1, 1.5, Verdict.PASS), (0.1, 2.5, Verdict.FAIL), (0.2, 1.0, Verdict.AMBIGUOUS)],
)
def test_a_drifting_machine_changes_no_verdict(submission: float, target: float, verdict: Verdict) -> None:
    measured, _ = timing(submission)
    performance = measure_programs(measured, Goal(target)).performance
    assert performance.verdict is verdict
    assert performance.speedup == pytest.approx(0.2 / submission, rel=0.02)
    assert [case.name for case in performance.cases] == ["n = 100", "n = 200"]
    assert performance.message == speed.PROCESS_TIMES


def test_the_reference_runs_twice_as_often_in_turn_and_in_both_directions() -> None:
    measured, order = timing()
    measure_programs(measured, Goal(1.0))
    first = order[2:]  # one run of each comes before
    blocks = ["".join(first[at : at + 6]) for at in range(0, 36, 6)]
    assert all(sorted(block) == list("AAAABB") and block == block[::-1] for block in blocks)
    assert len(order) == 2 * 2 * (2 + 6 * 6)  # parts, cases; six blocks suffice for a clear verdict


def test_both_meet_the_same_content_which_is_another_in_each_part() -> None:
    measured, _ = timing()
    measure_programs(measured, Goal(1.0))
    of_reference, of_submission = (list(dict.fromkeys(measured.sessions[arm].contents)) for arm in "AB")
    assert of_reference == of_submission
    assert len(of_reference) == 2 * 2  # parts, cases


def test_a_verdict_that_is_not_clear_takes_more_blocks_and_a_precise_one_all() -> None:
    measured, order = timing(0.2)
    measure_programs(measured, Goal(1.0))
    assert len(order) == 4 * 2 * (2 + 6 * 20)
    measured, order = timing()
    measure_programs(replace(measured, effort=PRECISE), Goal(1.0))
    assert len(order) == 2 * 2 * (2 + 6 * 20)


class ChangesLate(Program):
    """A program whose tenth run writes something else."""

    def run(self, call: Call) -> Answer:
        answer = super().run(call)
        return replace(answer, files={"sum.txt": b"4"}) if len(self.contents) == 10 else answer


def test_equal_outputs_are_compared_once_and_a_wrong_output_of_a_later_run_is_seen() -> None:
    checked: list[bytes] = []

    def check(_case: Case, _run: Run, files: Mapping[str, bytes]) -> str:
        checked.append(files["sum.txt"])
        return "" if files["sum.txt"] == b"5" else "another sum"

    writes = {"files": {"sum.txt": b"5"}}
    measured, order = timing(changed=writes, reference=writes)
    problem = replace(
        PROBLEM, run=lambda _case: Run({"sum.txt": Words("5")}, arguments=("5",)), checker=check
    )
    measured = replace(measured, problem=problem)
    assert measure_programs(measured, Goal(1.0)).performance.verdict is Verdict.PASS
    assert len(checked) == 2 * 2 * 2  # arms, parts, cases
    wrong = {**measured.sessions, "B": ChangesLate("B", order, 0.1, **writes)}
    performance = measure_programs(replace(measured, sessions=wrong), Goal(1.0)).performance
    assert performance.verdict is Verdict.FAIL
    assert '"4" instead of "5"' in performance.message


def test_a_region_counts_instead_of_the_process() -> None:
    measured, _ = timing(0.2, {"region": 1e-3}, {"region": 4e-3})
    performance = measure_programs(replace(measured, problem=IN_REGION), Goal(2.0)).performance
    assert performance.verdict is Verdict.PASS
    assert performance.speedup == pytest.approx(4.0, rel=1e-6)
    assert performance.message == ""
    again = speed.recomputed(PerformanceResult.model_validate_json(performance.model_dump_json()))
    assert (again.verdict, again.speedup, again.interval, again.message) == (
        performance.verdict,
        performance.speedup,
        performance.interval,
        performance.message,
    )


def test_work_that_is_done_outside_of_the_region_is_seen() -> None:
    measured, _ = timing(0.4, {"region": 1e-3}, {"region": 0.15})
    found = measure_programs(replace(measured, problem=IN_REGION), Goal(1.0))
    assert found.performance.verdict is Verdict.UNTRUSTED
    assert "outside of the region that it times, and the reference" in found.reasons[0]


def test_a_region_that_is_longer_than_its_process_is_not_believed() -> None:
    measured, _ = timing(0.1, {"region": 0.3}, {"region": 0.15})
    found = measure_programs(replace(measured, problem=IN_REGION), Goal(0.1)).performance
    assert found.verdict is Verdict.FAIL
    assert "it printed 300 ms for the region that is timed, and ran for 10" in found.message


@pytest.mark.parametrize(
    ("changes", "verdict", "message"),
    [
        ({"files": {STDOUT: b"7777"}}, Verdict.FAIL, 'n = 100: line 1 of stdout, word 1: "7777" instead'),
        ({"exit_code": 3}, Verdict.FAIL, "n = 100: the program ended with exit code 3"),
        ({"status": Status.TIMEOUT, "message": "no end"}, Verdict.FAIL, "n = 100: no end"),
        ({"status": Status.LOST, "message": "no GPU"}, Verdict.INFRA_ERROR, "n = 100: no GPU"),
        ({"region": 0.0}, Verdict.FAIL, "n = 100: it printed no time of the region"),
    ],
)
def test_a_run_that_does_not_count_ends_it(changes: dict[str, Any], verdict: Verdict, message: str) -> None:
    measured, order = timing(0.1, changes)
    found = measure_programs(replace(measured, problem=IN_REGION), Goal(1.0)).performance
    assert found.verdict is verdict
    assert found.message.startswith(f"timing ended early: {message}")
    assert order == ["A", "B"]


def test_a_reference_that_fails_is_no_fault_of_the_student() -> None:
    measured, _ = timing(0.1, reference={"exit_code": 3})
    found = measure_programs(measured, Goal(1.0)).performance
    assert found.verdict is Verdict.INFRA_ERROR
    assert "the reference on n = 100: the program ended with exit code 3" in found.message


def test_times_of_a_region_are_added_in_their_units() -> None:
    printed = "copy 5 us\nrun 2.5 ms\nrun 1 ms"
    assert seconds_of(r"(?P<us>[\d.]+) us|(?P<ms>[\d.]+) ms", printed, 1.0) == pytest.approx(3.505e-3)
    with pytest.raises(ValueError, match="printed no time"):
        seconds_of(r"(?P<s>[\d.]+) s$", printed, 1.0)


SLEEPER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) { usleep(SLEEP); printf("%s\n", words[1]); }
"""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_real_processes_are_timed_by_the_clock_of_their_sandbox(tmp_path: Path) -> None:
    def built(name: str, micros: int) -> Callable[[Run], Answer]:
        path = tmp_path / name
        command = ["gcc", "-x", "c", f"-DSLEEP={micros}", "-o", str(path), "-"]
        subprocess.run(command, input=SLEEPER, text=True, check=True)
        start = programs.Start(path, path, LIMITS)
        return lambda wanted: programs.run(ProcessSandbox(), start, wanted, 5.0)

    (case, _) = PROBLEM.timing_cases(1)
    slow, fast = (built(name, micros)(run(case)) for name, micros in (("slow", 300_000), ("fast", 1000)))
    assert slow.seconds > 0.3 > fast.seconds > 1e-3
    assert slow.files[STDOUT].split() == [run(case).arguments[0].encode()]
