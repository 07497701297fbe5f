"""What a class did: groups, boards, outliers."""

from __future__ import annotations

import pytest
import report_samples as samples

from grader.records.record import PerformanceResult, Record
from grader.reports.charts import distribution, outliers, roofline, speedups
from grader.reports.classroom import Classroom, attention, boards, failures, overview

RACE = "Two threads use the same shared memory, one of them writes, and no barrier orders them"


def classroom(**results: Record | None) -> Classroom:
    return Classroom(results, {}, {})


def test_the_same_mistake_with_other_numbers_is_one_failure_and_the_most_common_comes_first() -> None:
    other = samples.raced()
    other["correctness"]["cases"][0]["diagnosis"] = "rows beyond 7943 are not written"
    more = samples.raced()
    more["correctness"]["cases"][0]["diagnosis"] = "rows beyond 12 are not written"
    found = failures(
        classroom(
            a=samples.record("a", other),
            b=samples.record("b", more),
            c=samples.record("c", samples.unbuilt("layernorm_forward")),
        )
    )
    assert [(failure.text, failure.names) for failure in found] == [
        (RACE, ("a", "b")),
        ("Rows beyond 7943 are not written", ("a", "b")),
        ('softmax_kernel.cu does not compile: identifier "flaot" is undefined', ("c",)),
    ]


def ended(message: str, seconds: int) -> dict[str, object]:
    """A problem whose only wrong case ended without numbers, and no checker saw why."""
    case = {"name": "2 x 3", "group": "short rows", "verdict": "FAIL", "message": message.format(seconds)}
    return samples.raced(correctness={"verdict": "FAIL", "cases": [case]}, checks=[])


def test_the_same_limit_or_crash_in_several_submissions_is_suspicious_and_no_common_failure() -> None:
    late, crash = "the host code used more than {} s of processor time", "the host code crashed: SIGSEGV"
    together = classroom(
        a=samples.record("a", ended(late, 60)),
        b=samples.record("b", ended(late, 61)),
        c=samples.record("c", ended(crash, 0)),
        d=samples.record("d", samples.raced()),
        e=samples.record("e", samples.raced()),
    )
    (doubted,) = [kind for kind in attention(together) if kind.title.startswith("The same limit or crash")]
    assert [item.name for item in doubted.entries] == ["a", "b"]
    assert doubted.entries[0].text == "LayerNorm forward: The host code used more than 60 s of processor time"
    listed = {failure.text: failure.names for failure in failures(together)}
    assert listed[RACE] == ("d", "e")
    assert listed["The host code crashed: SIGSEGV"] == ("c",)
    assert not [text for text in listed if "processor time" in text]


def test_a_compiler_that_was_stopped_is_as_suspicious() -> None:
    stopped = samples.unbuilt(log="Compiling was stopped: more than 180 s of processor time.")
    several = classroom(a=samples.record("a", stopped), b=samples.record("b", stopped))
    assert [kind.title[:22] for kind in attention(several)] == ["The same limit or crash"[:22]]
    assert failures(several) == ()


def test_a_board_ranks_what_was_measured_and_believed() -> None:
    (board,) = boards(
        classroom(
            slow=samples.record("slow", samples.timed(speedup=2)),
            fast=samples.record("fast", samples.timed(speedup=9)),
            cheat=samples.record("cheat", samples.untrusted()),
            unmeasured=samples.record("x", samples.problem()),
        ),
        everybody=True,
    )
    assert [(row.name, row.speedup) for row in board.rows] == [("fast", 9), ("slow", 2)]
    assert board.targets == (6.5,)


def test_a_board_names_both_targets_where_some_launchers_take_host_pointers() -> None:
    host = samples.timed(speedup=5)
    host["performance"]["target"] = 4.0
    measured = classroom(a=samples.record("a", samples.timed(speedup=9)), b=samples.record("b", host))
    assert [board.targets for board in boards(measured, everybody=True)] == [(4.0, 6.5)]


def test_submissions_without_any_wanted_file_are_not_the_same() -> None:
    nothing = {
        name: samples.record(name, submission={"name": name, "sha256": "e3b0c44298fc", "files": []})
        for name in ("a", "b")
    }
    assert "The same files under several names" not in [
        found.title for found in attention(classroom(**nothing))
    ]


def test_what_to_look_at_has_a_reason_each() -> None:
    close = samples.timed(speedup=6.5)
    close["performance"]["verdict"] = "AMBIGUOUS"
    twin = samples.record("twin", samples.problem())
    results: dict[str, Record | None] = {
        f"s{n}": samples.record(f"s{n}", samples.timed(speedup=7 + n / 10)) for n in range(8)
    }
    results |= {
        "far": samples.record("far", samples.timed(speedup=60)),
        "close": samples.record("close", close),
        "cheat": samples.record("cheat", samples.untrusted()),
        "broken": samples.record("broken", samples.failed_machine()),
        "pending": None,
        "twin": twin,
        "copy": twin,
    }
    found = {
        kind.title.partition(":")[0]: [item.name for item in kind.entries]
        for kind in attention(classroom(**results))
    }
    assert found["Not trusted"] == ["cheat"]
    assert found["Machine faults, and submissions that are not graded"] == ["broken", "pending"]
    assert found["Too close to call"] == ["close"]
    assert "far" in found["Far from the others"]
    assert found["The same files under several names"] == ["twin"]


def test_nothing_is_far_from_a_class_of_equals() -> None:
    assert outliers([1.0] * 9 + [50.0]) == ()
    assert outliers([1.0, 2.0]) == ()
    assert outliers([1.0, 1.1, 0.9, 1.2, 0.8, 9.0]) == (9.0,)


def test_every_submission_is_in_one_column_and_full_marks_in_their_own() -> None:
    bins = distribution([0, 0.1, 11.99, 12, 12], 12)
    assert sum(column.count for column in bins) == 5
    assert bins[-1].count == 2
    assert bins[0].count == 2


def test_a_problem_that_nobody_could_be_graded_in_has_no_distribution() -> None:
    (found,) = overview(classroom(a=samples.record("a", samples.failed_machine())))
    assert found.bins == ()
    assert found.median == ""


def performance() -> PerformanceResult:
    return PerformanceResult.model_validate(samples.timed()["performance"])


def test_bars_are_in_proportion_and_the_target_among_them() -> None:
    chart = speedups(performance())
    assert chart is not None
    assert chart.bars[0].width / chart.target == pytest.approx(0.9 * 8 / 6.5)
    assert chart.bars[0].low < chart.bars[0].width < chart.bars[0].high
    assert max(bar.high for bar in chart.bars) < 100


def test_a_roofline_places_bandwidth_by_bytes_below_the_roof() -> None:
    chart = roofline(performance())
    assert chart is not None
    assert [mark.label for mark in chart.yours][1] == "64 x 512: 3200 GB/s"
    assert [mark.x for mark in chart.yours] == sorted(mark.x for mark in chart.yours)
    for yours, roof in zip(chart.yours, chart.roof, strict=True):
        assert yours.y >= roof.y - 1e-9
    assert [mark.label for mark in chart.across] == ["4 MB", "500 MB"]


def test_one_shape_and_older_records_have_charts_as_far_as_they_go() -> None:
    measured = performance()
    (first, *_) = measured.cases
    one = measured.model_copy(update={"cases": [first]})
    assert roofline(one) is not None
    old = measured.model_copy(update={"cases": [first.model_copy(update={"minimal_bytes": None})]})
    assert roofline(old) is None
    assert speedups(old) is not None
    assert speedups(measured.model_copy(update={"cases": []})) is None


def test_staff_see_who_reached_what_the_simulator_cannot_run() -> None:
    (kind,) = attention(
        classroom(a=samples.record("a", samples.lacking()), b=samples.record("b", samples.problem()))
    )
    assert kind.title.startswith("Undecided")
    (item,) = kind.entries
    assert item.name == "a"
    assert item.text == (
        "Softmax forward: Undecided: the simulator cannot run textures at softmax_kernel.cu:15. "
        "Read the array itself: a const float* __restrict__ goes through the same cache."
    )
