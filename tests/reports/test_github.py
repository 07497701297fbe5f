"""In GitHub Actions nothing that a student wrote is a command, and the limits of GitHub are kept."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

import report_samples as samples

from grader.reports import github
from grader.reports.views import view

if TYPE_CHECKING:
    from grader.records.record import Record


def commands(record: Record) -> tuple[str, ...]:
    return github.commands(view(record, staff=False), {})


def test_findings_and_compile_errors_are_annotations_at_their_lines() -> None:
    found = commands(samples.record("x", samples.unbuilt(), samples.raced()))
    assert found[0] == ('::error file=softmax_kernel.cu,line=22,title=nvcc::identifier "flaot" is undefined')
    assert found[1].startswith(
        "::error file=layernorm_kernel.cu,line=17,title=LayerNorm forward%3A racecheck race_shared::"
    )


def test_what_a_student_wrote_ends_no_command_and_begins_none() -> None:
    for command in commands(samples.hostile()):
        assert re.fullmatch(r"::(error|notice) ([^\r\n]*?)::[^\r\n]*", command)
        assert not re.search(r"[\x00-\x1f\u202e]", command)


def test_no_more_annotations_than_github_shows() -> None:
    findings = [samples.finding(line=number) for number in range(1, 40)]
    checks = [{"tool": "racecheck", "verdict": "FAIL", "findings": findings}]
    found = commands(samples.record("x", samples.raced(checks=checks)))
    assert len(found) == github.MOST
    assert "and 30 more" in found[-1]


def test_the_log_is_printed_between_a_token_that_cannot_be_guessed() -> None:
    to = io.StringIO()
    record = samples.record("x", samples.problem(printed="::error::mine"))
    github.show(record, view(record, staff=False), Path(__file__), to, {})
    lines = to.getvalue().splitlines()
    stop = next(line for line in lines if line.startswith("::stop-commands::"))
    token = stop.removeprefix("::stop-commands::")
    printed = next(place for place, line in enumerate(lines) if "::error::mine" in line)
    assert lines.index(stop) < printed < lines.index(f"::{token}::")
    assert len(token) >= 32


def test_a_file_is_named_by_its_place_in_the_repository(tmp_path: Path) -> None:
    (tmp_path / "hw3" / "src").mkdir(parents=True)
    (tmp_path / "hw3" / "src" / "layernorm_kernel.cu").write_text("")
    to = io.StringIO()
    record = samples.record("x", samples.raced())
    github.show(record, view(record, staff=False), tmp_path / "hw3", to, {})
    assert "hw3/src/layernorm_kernel.cu,line=17" in to.getvalue()


def test_the_summary_is_appended_and_holds_no_markup_of_a_student(tmp_path: Path) -> None:
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    record = samples.hostile()
    github.show(
        record, view(record, staff=False), tmp_path, io.StringIO(), {"GITHUB_STEP_SUMMARY": str(file)}
    )
    text = file.read_text()
    assert text.startswith("before\n")
    assert "<script>" not in text
    assert "<img" not in text
    assert "Softmax forward" in text


def test_the_summary_says_what_to_mend_first() -> None:
    text = github.summary(view(samples.record("x", samples.raced()), staff=False))
    assert "no barrier orders them</code><br><code>layernorm_kernel.cu:17: value = shared[lane];" in text


def test_a_summary_stays_below_the_limit() -> None:
    many = [samples.problem(f"p{number}", title="x" * 5000) for number in range(90)]
    assert len(github.summary(view(samples.record("x", *many), staff=False))) < github.SUMMARY_BYTES
