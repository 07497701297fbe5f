"""The console report: what a student has to see, and the last line that scripts read."""

from __future__ import annotations

import io
import re

import pytest

from grader.records.record import (
    BadElement,
    BuildResult,
    CaseResult,
    CheckResult,
    CorrectnessResult,
    DemandResult,
    DeviceInfo,
    FindingRecord,
    GraderInfo,
    GroupResult,
    HintRecord,
    KernelResources,
    OutputResult,
    PerformanceResult,
    Points,
    ProblemResult,
    Record,
    SandboxInfo,
    SubmissionInfo,
    TimedCase,
    TrustResult,
)
from grader.records.verdict import Verdict
from grader.reports import console

WRONG = CaseResult(
    name="layernorm 37x1000",
    group="odd sizes",
    verdict=Verdict.FAIL,
    diagnosis="the last elements of a row are not written",
    outputs=[
        OutputResult(
            name="ln_res",
            max_error=1.5,
            allowed=1e-6,
            bad=37,
            total=37000,
            nan=2,
            first_bad=[BadElement(index=[0, 999], expected=0.25, got="NaN")],
        )
    ],
)


def problem(**changes: object) -> ProblemResult:
    fields: dict[str, object] = {
        "id": "layernorm_forward",
        "title": "LayerNorm forward",
        "verdict": Verdict.FAIL,
        "points": Points(earned=6, decided=12, possible=20),
        "build": BuildResult(
            ok=True,
            seconds=2.5,
            cached=False,
            command="nvcc",
            log="",
            resources=[KernelResources(kernel="ker_layer_norm", registers=40, spill_bytes=0, shared_bytes=0)],
        ),
        "correctness": CorrectnessResult(
            verdict=Verdict.FAIL,
            groups=[GroupResult(name="odd sizes", verdict=Verdict.FAIL, earned=0, possible=3)],
            cases=[WRONG],
        ),
        "performance": PerformanceResult(verdict=Verdict.NOT_MEASURED, target=15.8, message="no GPU here"),
        "trust": TrustResult(verdict=Verdict.PASS),
    }
    return ProblemResult.model_validate({**fields, **changes})


def shown(*problems: ProblemResult, verbose: bool = False, **changes: object) -> str:
    fields: dict[str, object] = {
        "grader": GraderInfo(version="1", config_sha256="0"),
        "assignment": "a",
        "submission": SubmissionInfo(name="jdoe", sha256="0", files=["layernorm_kernel.cu"]),
        "seed": 42,
        "started": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "device": DeviceInfo(kind="sim", name="sim", reason="no GPU was found"),
        "sandbox": SandboxInfo(backend="process", enforced=["wall time"], not_enforced=["network"]),
        "score": Points(earned=6, decided=12, possible=20),
        "problems": list(problems),
        "exit_code": 1,
    }
    text = io.StringIO()
    console.show(Record.model_validate({**fields, **changes}), text, verbose=verbose)
    return text.getvalue()


def test_the_last_line_is_the_score() -> None:
    assert shown(problem()).splitlines()[-1] == "Score: 6.0/12.0 (20.0 possible)"


def test_the_header_says_where_in_one_line_and_why_to_those_who_ask() -> None:
    whole = shown(verbose=True)
    for part in ("jdoe", "no GPU was found", "does not stop: network", "--seed 42"):
        assert part in whole
    first, where, *_ = shown().splitlines()
    assert "jdoe" in first
    assert where.startswith("on       ")
    assert where.rstrip().endswith("; seed 42")
    assert "does not stop" not in shown()


def test_a_problem_begins_with_what_to_mend_and_shows_one_wrong_element() -> None:
    lines = [text.strip() for text in shown(problem()).splitlines()]
    title = next(place for place, text in enumerate(lines) if text.startswith("LayerNorm forward"))
    assert "(8.0 undecided)" in lines[title]
    assert lines[title + 1] == "fix first     The last elements of a row are not written"
    assert (
        lines[title + 2] == "ln_res[0, 999] in layernorm 37x1000: expected 0.25, got NaN (37 of 37,000 wrong)"
    )
    assert lines[title + 3] == "correctness   0/1 cases"
    assert "largest error" not in " ".join(lines)


def test_a_finding_is_shown_with_what_was_seen_and_an_element_and_all_else_in_a_line() -> None:
    finding = FindingRecord(
        kind="race_shared", kernel="k", file="/tmp/k.cu", line=143, message="a race; with a hint"
    )
    other = finding.model_copy(update={"kind": "uninit_global", "line": 7})
    text = shown(
        problem(checks=[CheckResult(tool="racecheck", verdict=Verdict.FAIL, findings=[finding, other])])
    )
    assert "seen          a race" in text
    assert "example       ln_res[0, 999]" in text
    assert "with a hint" not in text
    assert "then          Global memory is read that nothing has written at" in text


def test_what_cannot_be_measured_is_said_once() -> None:
    text = shown(problem(), problem(id="other"))
    assert text.count("no GPU here") == 1
    assert "NOT_MEASURED" not in text
    changed = PerformanceResult(verdict=Verdict.NOT_MEASURED, target=1, message="no cases")
    text = shown(problem(), problem(id="other", performance=changed))
    assert "speed    layernorm_forward: no GPU here" in text
    assert "speed    other: no cases" in text


def test_what_ended_the_whole_run_is_said_once() -> None:
    missing = "g++ is missing, nvcc needs it. Install it:\n  sudo apt-get install g++"
    ended = problem(verdict=Verdict.INFRA_ERROR, message=missing)
    other = problem(verdict=Verdict.INFRA_ERROR, message="no device")
    for verbose in (False, True):
        text = shown(ended, ended, other, verbose=verbose, error=missing)
        assert text.count("g++ is missing") == 1
        assert text.count("no device") == 1


def test_verbose_shows_counts_wrong_elements_and_diagnoses() -> None:
    text = shown(problem(), verbose=True)
    assert "ln_res: 37 of 37,000 wrong (2 NaN); largest error 1.5, allowed there 1e-06" in text
    assert "[0, 999] expected 0.25, got NaN" in text
    assert "the last elements of a row are not written" in text


def test_an_error_that_is_allowed_is_not_called_the_largest() -> None:
    right = WRONG.outputs[0].model_copy(update={"max_error": 5e-8, "allowed": 3e-7})
    cases = [WRONG.model_copy(update={"outputs": [right]})]
    correctness = CorrectnessResult(verdict=Verdict.FAIL, cases=cases)
    assert "largest error" not in shown(problem(correctness=correctness), verbose=True)


def test_an_untouched_template_is_one_line_and_no_wall_of_numbers() -> None:
    correctness = CorrectnessResult(verdict=Verdict.FAIL, summary="nothing was written", cases=[WRONG] * 20)
    text = shown(problem(correctness=correctness, notes=["a note"]))
    assert "Nothing was written" in text
    assert "a note" not in text
    assert "[0, 999]" not in text


def test_a_compile_error_shows_the_words_of_the_compiler() -> None:
    build = BuildResult(
        ok=False, seconds=1, cached=False, command="nvcc", log="k.cu(7): error: expected a ;", resources=[]
    )
    assert "k.cu(7): error: expected a ;" in shown(problem(build=build))


def test_findings_and_hints_name_the_line() -> None:
    finding = FindingRecord(
        kind="race_shared", kernel="k", file="k.cu", line=143, message="written by thread 64"
    )
    text = shown(
        problem(
            checks=[CheckResult(tool="racecheck", verdict=Verdict.FAIL, findings=[finding])],
            hints=[HintRecord(kernel="k", file="k.cu", line=71, message="reads 32 sectors")],
        ),
        verbose=True,
    )
    assert "racecheck race_shared  k.cu:143  written by thread 64" in text
    assert "k.cu:71  reads 32 sectors" in text


def test_a_right_kernel_that_was_not_timed_shows_the_first_three_hints() -> None:
    hints = [
        HintRecord(kernel="k", file="k.cu", line=number, message="reads sectors") for number in range(1, 6)
    ]
    right = problem(verdict=Verdict.PASS, correctness=CorrectnessResult(verdict=Verdict.PASS), hints=hints)
    assert re.findall(r"k.cu:(\d)  reads", shown(right)) == ["1", "2", "3"]
    wrong = problem(hints=hints)
    assert "reads sectors" not in shown(wrong)


def test_a_measured_speed_has_its_interval_target_and_cases() -> None:
    performance = PerformanceResult(
        verdict=Verdict.PASS,
        target=6.5,
        speedup=8.123,
        interval=(8.0, 8.25),
        cases=[
            TimedCase(
                name="8x8x512",
                verdict=Verdict.PASS,
                speedup=8.1,
                interval=(8.0, 8.2),
                baseline_us=81.0,
                yours_us=10.0,
                bandwidth_fraction=0.97,
            )
        ],
    )
    text = shown(problem(performance=performance), verbose=True)
    assert "8.12x the unfused baseline (8.00 to 8.25), target 6.5x: PASS" in text
    assert "97%" in text


def test_each_demand_is_a_line() -> None:
    demands = [
        DemandResult(measure="code", verdict=Verdict.PASS, most=1.5, points=2, found=0.5),
        DemandResult(measure="spread", verdict=Verdict.NOT_MEASURED, most=1.3, points=2, message="no GPU"),
    ]
    text = shown(problem(demands=demands))
    assert "bytes of machine code over the reference's: 0.50, of at most 1.5: PASS" in text
    assert "largest over smallest speedup: no GPU\n" in re.sub(" +\n", "\n", text)


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J\x1b[1;31mPASS", "a\x00b\x07", "[bold red]PASS[/]", "\r\x1b]0;t\x07"]
)
def test_what_a_student_wrote_cannot_steer_the_terminal(hostile: str) -> None:
    text = shown(
        problem(printed=hostile, message=hostile),
        submission=SubmissionInfo(name=hostile, sha256="0", files=[], error=hostile),
    )
    assert "\x1b" not in text
    assert "\r" not in text
    assert "\x07" not in text
    assert hostile.startswith("[") <= ("[bold red]PASS[/]" in text)


def test_brackets_and_colons_of_a_student_are_shown_as_they_are() -> None:
    message = "Found [/b] :smile: [red].cu: rename it"
    strange = problem(build=None, message=message)
    assert message in shown(strange)
