"""Students see no seed, no staff's reasons and no path of the machine; staff see all."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import report_samples as samples

from grader.reports.views import DOUBTED, MACHINE, view

if TYPE_CHECKING:
    from grader.records.record import Record


def test_staff_see_the_record_as_it_is() -> None:
    record = samples.record()
    assert view(record, staff=True).record is record


def test_students_see_neither_seed_nor_sandbox_nor_paths() -> None:
    path = "crashed in /opt/grader/run/k.cu:3"
    record = samples.record(
        "doe", samples.problem(message=path), samples.unbuilt(log="/opt/a/k.cu(3): error: x")
    )
    text = view(record, staff=False).record.model_dump_json()
    for hidden in ("424242", "process", "/opt/", "/dev/", "wall time"):
        assert hidden not in text
    assert "crashed in k.cu:3" in text


def test_how_a_running_kernel_was_caught_is_not_told() -> None:
    shown = view(samples.record("doe", samples.untrusted()), staff=False).record
    assert "device needs" not in shown.model_dump_json()
    assert shown.problems[0].trust.reasons == [DOUBTED]
    assert shown.problems[0].performance.message == DOUBTED


def test_what_a_file_uses_and_may_not_is_told_to_its_author() -> None:
    policy = {"verdict": "UNTRUSTED", "reasons": ["starts or replaces programs: system"]}
    result = samples.problem(verdict="UNTRUSTED", correctness={"verdict": "UNTRUSTED"}, trust=policy)
    shown = view(samples.record("doe", result), staff=False).record
    assert shown.problems[0].trust.reasons == ["starts or replaces programs: system"]


def test_a_fault_of_the_machine_is_told_as_no_fault_of_the_student() -> None:
    record = samples.record("doe", samples.failed_machine(), error="driver at /opt/driver fell over")
    shown = view(record, staff=False).record
    assert shown.error == MACHINE
    assert shown.problems[0].message == MACHINE


UNTIL = datetime(2026, 12, 1, 12, tzinfo=UTC)


def with_hidden_cases() -> Record:
    wrong = samples.raced(printed="input[0] = 3.25")
    for group in wrong["correctness"]["groups"][:1]:
        group["hidden_until"] = UNTIL.isoformat()
    return samples.record("doe", wrong)


def test_of_a_hidden_group_students_see_counts_until_its_date() -> None:
    record = with_hidden_cases()
    shown = view(record, staff=False, now=UNTIL - timedelta(seconds=1)).record
    (case,) = shown.problems[0].correctness.cases
    assert (case.name, case.group, case.verdict) == ("1 of 4 hidden cases are right", "short rows", "FAIL")
    assert case.message == "hidden until 2026-12-01 12:00 +0000"
    text = shown.model_dump_json()
    for secret in ("1000", "37 x", "1037", "last elements", "3.25"):
        assert secret not in text
    assert shown.score == record.score
    later = view(record, staff=False, now=UNTIL).record.problems[0]
    assert (len(later.correctness.cases), later.printed) == (4, "input[0] = 3.25")
    assert view(record, staff=True).record is record


def test_raw_times_are_left_out() -> None:
    shown = view(samples.record("doe", samples.timed()), staff=False).record
    assert shown.problems[0].performance.cases[0].samples == {}
    assert shown.problems[0].performance.cases[0].speedup
