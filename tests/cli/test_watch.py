"""``grader grade --watch`` and ``--fast``: what is graded again, with what it begins, and what is told."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from grader.cli import grade as command
from grader.cli.arguments import FaultError
from grader.cli.watch import saved
from grader.records.exit_codes import ExitCode
from grader.records.record import CaseResult, CorrectnessResult, Record, read
from grader.records.verdict import Verdict
from grader.run import grading
from grader.run.judging import without_cases

if TYPE_CHECKING:
    from pathlib import Path

SOFTMAX, LAYERNORM = ("softmax_forward", "softmax_backward"), ("layernorm_forward", "layernorm_backward")


def record(request: grading.GradingRequest, verdict: Verdict = Verdict.FAIL) -> Record:
    """A record in which one case of each problem has failed."""
    case = CaseResult(name="the wrong case", group="g", verdict=verdict, message="wrong")
    problems = [
        without_cases(request.assignment, name, verdict, "").model_copy(
            update={"correctness": CorrectnessResult(verdict=verdict, cases=[case])}
        )
        for name in request.problems
    ]
    return Record.model_validate(
        {
            "grader": {"version": "1", "config_sha256": "0"},
            "assignment": request.assignment.id,
            "submission": {"name": "hw", "sha256": "0", "files": []},
            "seed": request.seed,
            "started": "2026-01-01T00:00:00+00:00",
            "seconds": 1.0,
            "score": {"earned": 0, "decided": 12.0 * len(problems), "possible": 20.0 * len(problems)},
            "problems": problems,
            "exit_code": 1,
        }
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[grading.GradingRequest]:
    """What was to be graded; nothing is."""
    requests: list[grading.GradingRequest] = []

    def grade(request: grading.GradingRequest, *_: object) -> Record:
        requests.append(request)
        return record(request)

    monkeypatch.setattr(grading, "grade", grade)
    return requests


def saving(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(command, "saved", lambda _: iter(frozenset({name}) for name in names))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(command.grade, arguments, standalone_mode=False, catch_exceptions=False)
    return int(result.return_value), result.output


def test_what_is_saved_is_graded_again_and_nothing_else(
    asked: list[grading.GradingRequest], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    saving(monkeypatch, "layernorm_kernel.cu", "block_reduce.h")
    file = tmp_path / "result.json"
    code, output = run(str(tmp_path), "--watch", "--json", str(file), "--assignment", "llm_systems_3")
    assert code == ExitCode.POINTS_LOST
    whole, one, header = asked
    assert set(one.problems) == {*LAYERNORM, "transformer"}
    assert header.problems == whole.problems
    assert {request.seed for request in asked} == {whole.seed}
    assert one.failed["layernorm_forward"] == ["the wrong case"]
    assert [problem.id for problem in read(file).problems] == list(whole.problems)
    assert "layernorm_kernel.cu saved" in output
    last = output.split("layernorm_kernel.cu saved")[1].split("saved")[0]
    assert "LayerNorm forward" in last
    assert "Softmax forward" not in last
    assert "Score: 0.0/60.0 (100.0 possible)" in last


def test_fast_begins_with_what_failed_in_the_record_that_is_there(
    asked: list[grading.GradingRequest], tmp_path: Path
) -> None:
    file = tmp_path / "result.json"
    arguments = (str(tmp_path), "--json", str(file), "--problem", "softmax_forward")
    run(*arguments, "--fast")
    run(*arguments, "--fast")
    run(*arguments)
    file.write_text("no record")
    run(*arguments, "--fast")
    first, second, whole, after = asked
    assert [request.fast for request in asked] == [True, True, False, True]
    assert second.failed == {"softmax_forward": ["the wrong case"]}
    assert not any(request.failed for request in (first, whole, after))


def test_an_archive_cannot_be_watched(tmp_path: Path) -> None:
    archive = tmp_path / "hw.zip"
    archive.write_bytes(b"")
    with pytest.raises(FaultError, match="Unpack it"):
        run(str(archive), "--watch")


def test_the_sources_that_were_saved_are_named_and_clutter_is_not(tmp_path: Path) -> None:
    pytest.importorskip("watchfiles")
    seen: list[frozenset[str]] = []

    def watch() -> None:
        for names in saved(tmp_path):
            seen.append(names)
            return

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    for number in range(600):  # until the watcher has begun to look
        (tmp_path / ".hidden.cu").write_text(str(number))
        (tmp_path / "notes.txt").write_text(str(number))
        (tmp_path / "kernel.cu").write_text(str(number))
        if not thread.is_alive():
            break
        time.sleep(0.1)
    assert seen == [{"kernel.cu"}]
