"""An appeal looks at raw times and believes nothing else in the record."""

from __future__ import annotations

import pytest
from test_speed import processes

from grader.assignments.assignment import load
from grader.judge.timing import steps
from grader.judge.timing.appeal import appeals
from grader.judge.timing.speed import assessed
from grader.judge.timing.statistics import Block
from grader.records.record import PerformanceResult, Points, Record, SubmissionInfo
from grader.records.verdict import Verdict
from grader.run.grading import grader_info
from grader.run.judging import without_cases

ASSIGNMENT = load("llm_systems_3")
MEASURED = assessed(processes(2.0), 1.5, [8, 16, 24])


def record(performance: PerformanceResult) -> Record:
    problem = without_cases(ASSIGNMENT, "softmax_forward", Verdict.PASS, "")
    return Record(
        grader=grader_info(ASSIGNMENT),
        assignment=ASSIGNMENT.id,
        submission=SubmissionInfo(name="doe", sha256="", files=[]),
        seed=1,
        started="2026-01-01T00:00:00+00:00",
        seconds=1.0,
        device=None,
        sandbox=None,
        score=Points(earned=0, decided=0, possible=0),
        problems=[problem.model_copy(update={"performance": performance})],
        exit_code=0,
    )


def test_a_verdict_that_its_times_bear_out_is_upheld() -> None:
    (found,) = appeals(record(MEASURED))
    assert found.upheld
    first, *cases = found.lines
    assert first.startswith("softmax_forward: recorded PASS at ")
    assert first.endswith(" of 1.5x; from the raw times: the same")
    assert len(cases) == 3
    assert "40 blocks in 2 processes" in cases[0]
    assert "compared, 0 wrong" in cases[0]


@pytest.mark.parametrize("change", [{"verdict": Verdict.FAIL}, {"speedup": 9.0}, {"target": 1000.0}])
def test_a_record_that_was_changed_is_not_upheld(change: dict[str, object]) -> None:
    (found,) = appeals(record(MEASURED.model_copy(update=change)))
    assert not found.upheld
    assert "the same" not in found.lines[0]


def test_the_verdict_of_a_single_case_counts_too() -> None:
    first, *others = MEASURED.cases
    forged = first.model_copy(update={"speedup": 0.5})
    (found,) = appeals(record(MEASURED.model_copy(update={"cases": [forged, *others]})))
    assert not found.upheld


def test_times_that_are_gone_are_told() -> None:
    first, *others = MEASURED.cases
    damaged = first.model_copy(
        update={"samples": {name: part for name, part in first.samples.items() if "same" not in name}}
    )
    (found,) = appeals(record(MEASURED.model_copy(update={"cases": [damaged, *others]})))
    assert not found.upheld
    assert "the raw times are incomplete" in found.lines[0]


def test_where_nothing_was_measured_nothing_is_decided_again() -> None:
    nothing = PerformanceResult(verdict=Verdict.NOT_MEASURED, target=6.5)
    assert not list(appeals(record(nothing)))


def trained(*, speedup: float = 1.3, difference: float = 0.0) -> PerformanceResult:
    noise = (0.99, 1.0, 1.01, 1.0, 0.995, 1.005, 1.0, 1.0)
    blocks = tuple(Block("ABBA", (noisy, 1 / speedup, noisy / speedup, 1.0)) for noisy in noise)
    return steps.assessed("twenty steps", steps.EAGER, [steps.Turns(blocks, difference)] * 2, 1.1)


@pytest.mark.parametrize("measured", [trained(), trained(speedup=1.02), trained(difference=0.5)])
def test_times_of_training_bear_out_their_verdict_too(measured: PerformanceResult) -> None:
    (found,) = appeals(record(PerformanceResult.model_validate_json(measured.model_dump_json())))
    assert found.upheld
    assert "by steps, 16 blocks in 2 processes" in found.lines[1]
    (forged,) = appeals(record(measured.model_copy(update={"verdict": Verdict.AMBIGUOUS})))
    assert not forged.upheld
